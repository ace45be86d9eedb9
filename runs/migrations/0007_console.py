from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

_SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0006_count_open_runs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentScope",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("agent", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="AuditRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("actor", models.TextField()),
                ("act", models.TextField(help_text="run.cancel, intent.approve, gate.place, token.create, login …")),
                ("door", models.CharField(help_text="page, api, shell or system.", max_length=8)),
                (
                    "address",
                    models.TextField(
                        blank=True, db_default="", help_text="The client's network address, where there is one."
                    ),
                ),
                (
                    "run",
                    models.UUIDField(help_text="No foreign key: the record outlives whatever it tells of.", null=True),
                ),
                ("agent", models.TextField(blank=True, db_default="")),
                (
                    "subject",
                    models.TextField(
                        blank=True, db_default="", help_text="What else it was about: a scope, a user, a seq."
                    ),
                ),
                ("reason", models.TextField(blank=True, db_default="")),
                ("detail", models.JSONField(db_default={})),
            ],
        ),
        migrations.CreateModel(
            name="BulkAct",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("verb", models.CharField(max_length=16)),
                ("query", models.TextField(help_text="The query as its author saw it, for the record.")),
                ("reason", models.TextField()),
                ("actor", models.TextField()),
                ("door", models.CharField(max_length=8)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(null=True)),
                ("stopped_by", models.TextField(blank=True, db_default="")),
            ],
        ),
        migrations.CreateModel(
            name="BulkItem",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "bulk_id", "run_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "bulk",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="runs.bulkact",
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
                ("outcome", models.CharField(help_text="done, skipped or failed.", max_length=8, null=True)),
                ("said", models.TextField(blank=True, db_default="", help_text="Why it was skipped or failed.")),
                ("at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=60)),
                ("query", models.TextField(help_text="As in the list's address, without the leading question mark.")),
                ("shared", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="at",
            field=models.TextField(
                db_default="", help_text="The tool or wait that it stood at when it was last let go."
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="cost",
            field=models.FloatField(db_default=0.0),
        ),
        migrations.AddField(
            model_name="run",
            name="person_acted",
            field=models.BooleanField(db_default=False, help_text="Whether a person decided something in it."),
        ),
        migrations.AddField(
            model_name="run",
            name="region",
            field=models.TextField(db_default="", help_text="Of the worker that last let it go."),
        ),
        migrations.AddField(
            model_name="run",
            name="tokens",
            field=models.BigIntegerField(db_default=0, help_text="As of when it was last let go, like its cost."),
        ),
        migrations.AddField(
            model_name="run",
            name="tools",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                db_default=[],
                help_text="Tools called so far, as of when it was last let go.",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=django.contrib.postgres.indexes.GinIndex(fields=["tools"], name="runs_run_tools"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("cost__gt", 0)), fields=["-cost"], name="runs_run_costly"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", False)), fields=["ended_at"], name="runs_run_ended"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("region", ""), _negated=True), fields=["region", "-id"], name="runs_run_by_region"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("epoch__gt", 1)), fields=["-id"], name="runs_run_taken_over"),
        ),
        migrations.AddField(
            model_name="agentscope",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="agent_scopes", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddIndex(
            model_name="auditrecord",
            index=models.Index(fields=["-at", "-id"], name="runs_audit_newest"),
        ),
        migrations.AddIndex(
            model_name="auditrecord",
            index=models.Index(fields=["actor", "-id"], name="runs_audit_by_actor"),
        ),
        migrations.AddIndex(
            model_name="auditrecord",
            index=models.Index(fields=["act", "-id"], name="runs_audit_by_act"),
        ),
        migrations.AddIndex(
            model_name="auditrecord",
            index=models.Index(
                condition=models.Q(("run__isnull", False)), fields=["run", "-id"], name="runs_audit_by_run"
            ),
        ),
        migrations.AddField(
            model_name="savedview",
            name="owner",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name="agentscope",
            constraint=models.UniqueConstraint(fields=("user", "agent"), name="runs_agentscope_once"),
        ),
        migrations.AddIndex(
            model_name="bulkitem",
            index=models.Index(
                condition=models.Q(("outcome__isnull", True)), fields=["bulk", "run"], name="runs_bulk_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="runs_savedview_name"),
        ),
        migrations.RunSQL((_SQL / "audit_v1.sql").read_text(), "DROP FUNCTION runs_refuse_audit_change CASCADE"),
        # Workers of the version before go on with v2 while a deploy rolls.
        migrations.RunSQL((_SQL / "let_go_v3.sql").read_text(), "DROP FUNCTION runs_let_go_v3"),
    ]
