from django.db import migrations

# What models used. A row for each answer is written in the transaction that appends it: none is missing, and none is
# there twice; no two transactions meet in a row. The sweep adds up those of days that are over.
CREATE = """
CREATE TABLE runs_request_spent (
    run_id uuid NOT NULL,
    seq bigint NOT NULL,
    day date NOT NULL,
    agent text NOT NULL,
    release_id text NOT NULL,
    model text NOT NULL,
    lost boolean NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cost numeric,
    PRIMARY KEY (run_id, seq)
);
CREATE INDEX runs_request_spent_day ON runs_request_spent (day, agent);
CREATE TABLE runs_spending (
    day date NOT NULL,
    agent text NOT NULL,
    release_id text NOT NULL,
    model text NOT NULL,
    requests bigint NOT NULL,
    unpriced bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cost numeric NOT NULL,
    lost bigint NOT NULL,
    lost_unpriced bigint NOT NULL,
    lost_cost numeric NOT NULL,
    PRIMARY KEY (day, agent, release_id, model)
);
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0021_answer_under_way")]

    operations = [migrations.RunSQL(CREATE, "DROP TABLE runs_spending; DROP TABLE runs_request_spent")]
