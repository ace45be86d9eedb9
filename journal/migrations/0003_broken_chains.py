from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    """Journals are verified in the background, the longest unverified first. Appends leave `verified_at` alone, so that
    an index on it costs them nothing."""

    dependencies = [("journal", "0002_rare_kinds")]
    operations = [
        migrations.CreateModel(
            name="BrokenChain",
            fields=[
                ("run_id", models.UUIDField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField(help_text="Of the first fault; 0 stands for the head.")),
                ("what", models.TextField()),
                ("found_at", models.DateTimeField(db_default=Now())),
            ],
        ),
        migrations.RunSQL(
            "CREATE INDEX journal_head_verified ON journal_head (verified_at NULLS FIRST, run_id)",
            "DROP INDEX journal_head_verified",
        ),
    ]
