import django.db.models.deletion
from django.db import migrations, models

# As promotions would have left it: each version that was announced took the place of the one before.
BEFORE = """
UPDATE runs_release r SET replaced_id = (
       SELECT o.id FROM runs_release o WHERE o.agent = r.agent AND (o.created_at, o.id) < (r.created_at, r.id)
        ORDER BY o.created_at DESC, o.id DESC LIMIT 1)
 WHERE r.stage IN ('current', 'retiring')
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0015_fork_indexes")]
    operations = [
        migrations.AlterField(
            model_name="release",
            name="staged_by",
            field=models.TextField(db_default="", help_text="Who changed it; empty: nobody has yet."),
        ),
        migrations.AddField(
            model_name="release",
            name="replaced",
            field=models.ForeignKey(
                db_index=False,
                help_text="The release that was current before this one became it: what a rollback returns to.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="runs.release",
            ),
        ),
        migrations.RunSQL(BEFORE, migrations.RunSQL.noop),
    ]
