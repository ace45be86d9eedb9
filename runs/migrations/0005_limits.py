from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

_SQL = Path(__file__).parent.parent / "sql"
# runs_claim_v1 stays for workers of the version before, while a deploy rolls.
CLAIM = (_SQL / "claim_v2.sql").read_text()
UNCLAIM = "DROP FUNCTION runs_next_in_flight_v1; DROP FUNCTION runs_claim_v2; DROP FUNCTION runs_has_room_v1"
PERMITS = (_SQL / "permits_v1.sql").read_text()
UNPERMIT = "DROP FUNCTION runs_free_v1; DROP FUNCTION runs_acquire_v1; DROP FUNCTION runs_grant_v1"


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_metrics_and_lists")]

    operations = [
        migrations.AddField("gate", "lifted_by", models.TextField(blank=True, db_default="")),
        migrations.AddField("gate", "lift_reason", models.TextField(blank=True, db_default="")),
        migrations.AddField(
            "run",
            "over_limit",
            models.BooleanField(
                db_default=False,
                help_text="Queued for a place among its agent's runs in flight: sent when one is let go.",
            ),
        ),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["agent", "-priority", "id"],
                name="runs_run_over_limit",
                condition=models.Q(status="queued", over_limit=True),
            ),
        ),
        migrations.CreateModel(
            "Throttle",
            [
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "scope", "key", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("scope", models.TextField()),
                ("key", models.TextField(blank=True)),
                (
                    "at_once",
                    models.IntegerField(help_text="Of an agent: runs in flight, as a claim last said.", null=True),
                ),
                (
                    "sent",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(),
                        db_default=[],
                        help_text="The last sends of a rate, POSIX seconds.",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            "Permit",
            [
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "step", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="runs.run",
                    ),
                ),
                ("step", models.IntegerField()),
                ("attempt", models.IntegerField(help_text="The attempt that it is for.")),
                ("scope", models.TextField(help_text="tool:T")),
                (
                    "key",
                    models.TextField(
                        help_text="The value that calls at once are counted by; NULL: only a rate.", null=True
                    ),
                ),
                ("at_once", models.IntegerField(null=True)),
                ("priority", models.SmallIntegerField(db_default=0)),
                ("asked_at", models.DateTimeField(db_default=Now())),
                ("granted_at", models.DateTimeField(null=True)),
                (
                    "taken",
                    models.BooleanField(db_default=False, help_text="Whether the run has heard that it was granted."),
                ),
                (
                    "rate_key",
                    models.TextField(help_text="The value that sends in a time are counted by.", null=True),
                ),
                (
                    "not_before",
                    models.FloatField(help_text="When it may be sent, of its rate: POSIX seconds.", null=True),
                ),
            ],
            {
                "indexes": [
                    models.Index(
                        condition=models.Q(("granted_at__isnull", True)),
                        fields=["scope", "key", "-priority", "asked_at", "run", "step"],
                        name="runs_permit_line",
                    ),
                    models.Index(
                        condition=models.Q(("granted_at__isnull", False)),
                        fields=["scope", "key"],
                        name="runs_permit_granted",
                    ),
                    models.Index(
                        condition=models.Q(("not_before__isnull", False)),
                        fields=["scope", "rate_key", "not_before"],
                        name="runs_permit_booked",
                    ),
                ]
            },
        ),
        migrations.RunSQL(CLAIM, UNCLAIM),
        migrations.RunSQL(PERMITS, UNPERMIT),
    ]
