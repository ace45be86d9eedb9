from pathlib import Path

from django.db import migrations, models

_SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    """Tables, partitions, functions. The files are as final as this: a change is a new file and a new name."""

    initial = True
    dependencies = []
    operations = [
        migrations.RunSQL((_SQL / "0001_tables.sql").read_text()),
        migrations.RunSQL((_SQL / "0002_append.sql").read_text()),
        migrations.CreateModel(
            name="Head",
            fields=[
                ("run_id", models.UUIDField(primary_key=True, serialize=False)),
                ("epoch", models.BigIntegerField()),
                ("verified_seq", models.BigIntegerField()),
                ("verified_at", models.DateTimeField(null=True)),
                ("last_steering_seq", models.BigIntegerField()),
                ("last_seq", models.BigIntegerField()),
                ("last_recorded_at", models.DateTimeField(null=True)),
                ("last_hash", models.BinaryField()),
            ],
            options={
                "db_table": "journal_head",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="JournalEntry",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("run_id", models.UUIDField()),
                ("seq", models.BigIntegerField()),
                ("epoch", models.BigIntegerField()),
                ("recorded_at", models.DateTimeField()),
                ("v", models.IntegerField()),
                ("step", models.IntegerField(null=True)),
                ("settles", models.IntegerField(null=True)),
                ("kind", models.TextField()),
                ("actor", models.TextField()),
                ("request_id", models.TextField(null=True)),
                ("body", models.BinaryField()),
            ],
            options={
                "db_table": "journal_entry",
                "managed": False,
            },
        ),
    ]
