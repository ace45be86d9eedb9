from django.db import migrations, models


class Migration(migrations.Migration):
    """What the overview counts: runs by the hour in which they ended, workers that were lost, late results."""

    dependencies = [("runs", "0010_shared_cache")]
    operations = [
        migrations.RemoveIndex(model_name="run", name="runs_run_ended"),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", False)),
                fields=["ended_at"],
                include=("status", "person_acted", "agent"),
                name="runs_run_ended",
            ),
        ),
        migrations.AddIndex(
            model_name="workersession",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", False)), fields=["-ended_at"], name="runs_session_ended"
            ),
        ),
        migrations.AddIndex(
            model_name="evidence", index=models.Index(fields=["recorded_at"], name="runs_evidence_newest")
        ),
    ]
