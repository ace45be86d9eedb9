from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

_SQL = Path(__file__).parent.parent / "sql"
# As starts chose until now: the newest release of each agent takes new runs.
STAGES = """
UPDATE runs_release r SET staged_by = 'system', stage = CASE
       WHEN r.id = (SELECT o.id FROM runs_release o WHERE o.agent = r.agent
                      ORDER BY o.created_at DESC, o.id DESC LIMIT 1)
       THEN 'current' ELSE 'retiring' END
"""


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0013_acted"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="run",
            options={
                "permissions": [
                    ("start_run", "Start runs"),
                    ("control_run", "Cancel, hold, resume, retry, release, signal and note runs"),
                    ("answer_ask", "Answer a run's questions"),
                    ("approve_intent", "Approve, reject, change or question intents"),
                    ("reconcile_intent", "Reconcile intents in doubt"),
                    ("place_gate", "Place and lift gates"),
                    ("act_in_bulk", "Act on all runs that match a query"),
                    ("save_view", "Keep views of the list of runs"),
                    ("share_view", "Share views with everybody"),
                    ("see_audit", "Read the audit list"),
                    ("export_audit", "Export the audit list"),
                    ("stage_release", "Promote and retire releases, set the share of a canary"),
                    ("roll_back_release", "Give new runs to the release before again"),
                    ("repin_run", "Move runs to another release"),
                    ("fork_run", "Start runs from a part of another's journal"),
                    ("order_drain", "Drain, extend and lift drains"),
                    ("administer", "Manage tokens, scopes and workers"),
                ]
            },
        ),
        migrations.AddField(
            model_name="release",
            name="share",
            field=models.SmallIntegerField(db_default=0, help_text="Of a canary: how many of 100 new runs it takes."),
        ),
        migrations.AddField(
            model_name="release",
            name="stage",
            field=models.CharField(
                choices=[
                    ("candidate", "Candidate"),
                    ("canary", "Canary"),
                    ("current", "Current"),
                    ("retiring", "Retiring"),
                    ("retired", "Retired"),
                ],
                db_default="candidate",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="release",
            name="staged_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                help_text="When its stage or its share last changed.",
            ),
        ),
        migrations.AddField(
            model_name="release",
            name="staged_by",
            field=models.TextField(db_default="", help_text="Who changed it."),
        ),
        migrations.AddField(
            model_name="run",
            name="denials",
            field=models.IntegerField(
                db_default=0, help_text="Calls that a person denied, as of when it was last let go."
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="doubts",
            field=models.IntegerField(db_default=0, help_text="Calls that were ever in doubt, as of then too."),
        ),
        migrations.AddField(
            model_name="run",
            name="forked_at",
            field=models.BigIntegerField(help_text="The last entry that was copied from there.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="forked_from",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="forks",
                to="runs.run",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="lineage",
            field=models.UUIDField(
                help_text="The first run of its family of forks; NULL: nobody forked it.", null=True
            ),
        ),
        migrations.RunSQL(STAGES, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.UniqueConstraint(
                condition=models.Q(("stage", "current")), fields=("agent",), name="runs_release_one_current"
            ),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.UniqueConstraint(
                condition=models.Q(("stage", "canary")), fields=("agent",), name="runs_release_one_canary"
            ),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.CheckConstraint(
                condition=models.Q(("stage__in", ["candidate", "canary", "current", "retiring", "retired"])),
                name="runs_release_stage",
            ),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.CheckConstraint(
                condition=models.Q(("share__range", (0, 100))), name="runs_release_share"
            ),
        ),
        migrations.RunSQL((_SQL / "claim_v3.sql").read_text(), "DROP FUNCTION runs_claim_v3"),
        migrations.RunSQL((_SQL / "let_go_v4.sql").read_text(), "DROP FUNCTION runs_let_go_v4"),
        migrations.RunSQL((_SQL / "release_for_v1.sql").read_text(), "DROP FUNCTION runs_release_for_v1"),
    ]
