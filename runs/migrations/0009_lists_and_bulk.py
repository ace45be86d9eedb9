from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0008_roles_tokens_audit"),
    ]

    operations = [
        migrations.AddField(
            model_name="bulkact",
            name="request_id",
            field=models.TextField(help_text="The same order sent twice is one act.", null=True, unique=True),
        ),
        migrations.AddIndex(
            model_name="bulkact",
            index=models.Index(condition=models.Q(("ended_at__isnull", True)), fields=["id"], name="runs_bulk_going"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True)), fields=["since", "id"], name="runs_run_standing"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True), models.Q(("at", ""), _negated=True)),
                fields=["at", "-id"],
                name="runs_run_by_at",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("tokens__gt", 0)), fields=["-tokens"], name="runs_run_by_tokens"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("intents__contains", [{"state": "in_doubt"}])),
                fields=["-id"],
                name="runs_run_in_doubt",
            ),
        ),
    ]
