from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Apart, for it must not run in a transaction: runs are written while the indexes are built."""

    atomic = False
    dependencies = [("runs", "0014_releases_and_forks")]
    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("forked_from__isnull", False)), fields=["forked_from"], name="runs_run_by_source"
            ),
        ),
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("lineage__isnull", False)), fields=["lineage"], name="runs_run_by_lineage"
            ),
        ),
    ]
