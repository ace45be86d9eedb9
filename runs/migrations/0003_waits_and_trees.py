from pathlib import Path

from django.db import migrations, models

_SQL = Path(__file__).parent.parent / "sql"


TREES = ("runs_tell_parent_v1", "runs_spawn_v1", "runs_joined_v1")


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_trees_and_control")]

    operations = [
        migrations.AddField(
            "run", "awaits_any", models.BooleanField(db_default=False, help_text="Whether one of them is enough.")
        ),
        migrations.AddField(
            "run",
            "awaits_signals",
            models.JSONField(db_default=[], help_text="Names of signals that it waited for at its last park."),
        ),
        migrations.RunSQL((_SQL / "trees_v1.sql").read_text(), ";".join(f"DROP FUNCTION {name}" for name in TREES)),
        # Workers and web processes of the version before go on with v1 while a deploy rolls.
        migrations.RunSQL((_SQL / "let_go_v2.sql").read_text(), "DROP FUNCTION runs_let_go_v2"),
        migrations.RunSQL((_SQL / "start_v2.sql").read_text(), "DROP FUNCTION runs_start_v2"),
    ]
