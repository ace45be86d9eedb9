from pathlib import Path

from django.db import migrations, models

_SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_console")]

    operations = [
        migrations.AddField(
            model_name="auditrecord",
            name="role",
            field=models.TextField(blank=True, db_default="", help_text="The actor's roles at that time."),
        ),
        migrations.AddField(
            model_name="token", name="expires_at", field=models.DateTimeField(null=True, help_text="NULL: never.")
        ),
        migrations.AddField(model_name="token", name="revoked_at", field=models.DateTimeField(null=True)),
        migrations.AddField(model_name="token", name="revoked_by", field=models.TextField(blank=True, db_default="")),
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
                    ("administer", "Manage releases, tokens, scopes and workers"),
                ]
            },
        ),
        migrations.RunSQL((_SQL / "audit_v2.sql").read_text(), "DROP FUNCTION runs_audit_v2"),
    ]
