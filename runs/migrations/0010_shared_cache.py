from django.db import migrations

# Failed logins are counted here, by all web processes together. What it holds may be lost: no write-ahead log.
CREATE = """
CREATE UNLOGGED TABLE holdfast_cache (
    cache_key varchar(255) PRIMARY KEY,
    value text NOT NULL,
    expires timestamptz NOT NULL
);
CREATE INDEX holdfast_cache_expires ON holdfast_cache (expires);
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0009_lists_and_bulk")]

    operations = [migrations.RunSQL(CREATE, "DROP TABLE holdfast_cache")]
