from pathlib import Path

from django.db import migrations

_SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_trees_and_control")]

    operations = []
