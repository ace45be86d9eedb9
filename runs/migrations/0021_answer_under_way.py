from django.db import migrations

# What of a model's answer has come so far, for whoever watches. The journal gets the whole answer or none: what is here
# may be lost, so it costs no write-ahead log.
CREATE = """
CREATE UNLOGGED TABLE runs_answer_under_way (
    run_id uuid PRIMARY KEY,
    epoch bigint NOT NULL,
    attempt_seq bigint NOT NULL,
    text text NOT NULL,
    thinking text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0020_taken_from")]

    operations = [migrations.RunSQL(CREATE, "DROP TABLE runs_answer_under_way")]
