from django.db import migrations

# Who ends the session of a dead worker knows nothing of replays. Whoever it is, the runs that it held count no crash.
SQL = """
CREATE FUNCTION recovery_excuse_v1() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
    IF EXISTS (SELECT FROM recovery_replay r WHERE r.taken_by = NEW.id AND r.ended_at IS NULL) THEN
        NEW.draining_at := NEW.ended_at;
    END IF;
    RETURN NEW;
END $fn$;
CREATE TRIGGER excuse_death_over_replay BEFORE UPDATE OF ended_at ON runs_workersession FOR EACH ROW
    WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.draining_at IS NULL)
    EXECUTE FUNCTION recovery_excuse_v1();
"""
DROP = "DROP TRIGGER excuse_death_over_replay ON runs_workersession; DROP FUNCTION recovery_excuse_v1"


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0003_replay_takes"),
    ]

    operations = [
        migrations.RunSQL(SQL, DROP),
    ]
