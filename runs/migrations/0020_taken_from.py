from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """For `has:takeover`: the newest runs that were taken over from a worker that was lost."""

    atomic = False
    dependencies = [("runs", "0019_pool_started")]
    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("taken_over_at__isnull", False)), fields=["-id"], name="runs_run_taken_from"
            ),
        ),
    ]
