from django.db import migrations


class Migration(migrations.Migration):
    """What the console lists over all runs: take-overs and what was reconciled. Both are rare among entries."""

    dependencies = [("journal", "0001_initial")]
    operations = [
        migrations.RunSQL(
            "CREATE INDEX journal_entry_rare ON journal_entry (recorded_at) WHERE kind IN ('NOTE', 'RECONCILE')",
            "DROP INDEX journal_entry_rare",
        ),
    ]
