import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_waits_and_trees")]

    operations = [
        migrations.CreateModel(
            name="Tally",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                ("total", models.FloatField()),
            ],
        ),
        migrations.AddField(
            model_name="workersession",
            name="totals",
            field=models.JSONField(
                db_default={}, help_text="What it counted; NULL once it is in runs_tally.", null=True
            ),
        ),
        migrations.AddIndex(
            model_name="workersession",
            index=models.Index(
                condition=models.Q(("totals__isnull", False)), fields=["id"], name="runs_session_counted"
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="release",
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to="runs.release"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["release", "-id"], name="runs_run_by_release"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("request_key__isnull", False)),
                fields=["request_key"],
                name="runs_run_by_request_key",
            ),
        ),
        # How many runs have ended, by agent, is told from these and never counted: see config/metrics.py.
        migrations.RunSQL(
            "CREATE STATISTICS runs_run_mix (mcv) ON status, agent FROM runs_run", "DROP STATISTICS runs_run_mix"
        ),
    ]
