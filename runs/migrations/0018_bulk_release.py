import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0017_claim_at_gates"),
    ]

    operations = [
        migrations.AddField(
            model_name="bulkact",
            name="release",
            field=models.ForeignKey(
                db_index=False,
                help_text="Of a move: where its runs go.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="runs.release",
            ),
        ),
        migrations.AddField(
            model_name="bulkact",
            name="judged",
            field=models.ForeignKey(
                db_index=False,
                help_text="Of a move: the act that judged its runs.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="runs.bulkact",
            ),
        ),
    ]
