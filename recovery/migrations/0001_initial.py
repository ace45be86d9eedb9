import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("runs", "0014_releases_and_forks"),
    ]

    operations = [
        migrations.CreateModel(
            name="Drain",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.TextField()),
                ("reason", models.TextField()),
                ("owner", models.TextField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("deadline_at", models.DateTimeField()),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("stopping", "Stopping"),
                            ("reaching", "Reaching"),
                            ("done", "Done"),
                            ("handed_over", "Handed Over"),
                            ("lifted", "Called off"),
                        ],
                        db_default="stopping",
                        max_length=12,
                    ),
                ),
                (
                    "phase_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), help_text="When the phase began."
                    ),
                ),
                (
                    "in_flight",
                    models.IntegerField(
                        db_default=0, help_text="Runs that workers held in the scope when it was ordered."
                    ),
                ),
                ("ended_at", models.DateTimeField(help_text="When it was done, handed over or called off.", null=True)),
                (
                    "report",
                    models.JSONField(
                        default=dict, help_text="How it ended: runs handed over with their calls, seconds of phases."
                    ),
                ),
                ("gate", models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, to="runs.gate")),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)), fields=["id"], name="recovery_drain_open"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("phase__in", ["stopping", "reaching", "done", "handed_over", "lifted"])),
                        name="recovery_drain_phase",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Replay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "purpose",
                    models.CharField(
                        choices=[("replay", "Replay"), ("pin", "Pin"), ("fork", "Fork")],
                        db_default="replay",
                        max_length=8,
                    ),
                ),
                ("at", models.BigIntegerField(help_text="The last entry that is looked at; NULL: all.", null=True)),
                (
                    "edits",
                    models.JSONField(
                        default=list, help_text="Of a fork: [{seq, value}], in the journal's tagged form."
                    ),
                ),
                (
                    "asks_model",
                    models.BooleanField(db_default=False, help_text="Whether a model is asked again, to compare."),
                ),
                ("actor", models.TextField()),
                ("bulk_id", models.BigIntegerField(help_text="The bulk act that it belongs to.", null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("dispatched_at", models.DateTimeField(null=True)),
                ("dispatches", models.IntegerField(db_default=0)),
                ("taken_by", models.UUIDField(help_text="The session of the worker that decides.", null=True)),
                ("taken_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("as_of_seq", models.BigIntegerField(help_text="The journal's end when it was read.", null=True)),
                (
                    "verdict",
                    models.TextField(
                        db_default="", help_text="same, diverged; of a pin: compatible, fork needed, refused."
                    ),
                ),
                ("result", models.JSONField(help_text="See recovery.replays.Result.", null=True)),
                ("error", models.TextField(db_default="", help_text="Why there is no result.")),
                (
                    "release",
                    models.ForeignKey(
                        db_index=False,
                        help_text="Under which it is decided.",
                        on_delete=django.db.models.deletion.PROTECT,
                        to="runs.release",
                    ),
                ),
                ("run", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="runs.run")),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=["created_at"],
                        name="recovery_replay_open",
                    ),
                    models.Index(
                        condition=models.Q(("bulk_id__isnull", False)), fields=["bulk_id"], name="recovery_replay_bulk"
                    ),
                ],
            },
        ),
    ]
