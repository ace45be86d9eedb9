from pathlib import Path

from django.db import migrations, models

_SQL = Path(__file__).parent.parent / "sql"


def replaced(new: str, old: str, name: str) -> migrations.RunSQL:
    """The function's next version in place of the last."""
    forwards = f"DROP FUNCTION {name};\n{(_SQL / new).read_text()}"
    backwards = f"DROP FUNCTION {name[:-1]}{int(name[-1]) + 1};\n{(_SQL / old).read_text()}"
    return migrations.RunSQL(forwards, backwards)


TREES = ("runs_tell_parent_v1", "runs_spawn_v1", "runs_joined_v1")


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_trees_and_control")]

    operations = [
        migrations.AddField(
            "run", "awaits_any", models.BooleanField(db_default=False, help_text="Whether one of them is enough.")
        ),
        migrations.RunSQL(
            (_SQL / "trees_v1.sql").read_text(), ";".join(f"DROP FUNCTION {name}" for name in TREES)
        ),
        replaced("let_go_v2.sql", "let_go_v1.sql", "runs_let_go_v1"),
        replaced("start_v2.sql", "start_v1.sql", "runs_start_v1"),
    ]
