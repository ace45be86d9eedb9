from pathlib import Path

from django.db import migrations

_SQL = Path(__file__).parent.parent / "sql"
DROP = """
DROP FUNCTION runs_claim_v4; DROP FUNCTION runs_gate_over_v1; DROP FUNCTION runs_place_gate_v1;
DROP FUNCTION runs_is_cancelling_v1;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0016_release_replaced"),
    ]

    operations = [
        migrations.RunSQL((_SQL / "claim_v4.sql").read_text(), DROP),
    ]
