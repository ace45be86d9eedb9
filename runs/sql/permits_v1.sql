-- Permits of limited tools. A limit is judged under the lock of one row of runs_throttle; a call has one permit, and asks
-- for it only when it is ready to be sent, so that nobody who holds one waits for another.
-- Lock order: heads, run rows, the row of a limit, the row of a rate. Nobody asks for a head with one of the last two.

-- Grant to the first in line (priority, then time) while there is room. The caller holds the row of (scope, key). Gives
-- the runs that it was granted to.
CREATE FUNCTION runs_grant_v1(the_scope text, the_key text) RETURNS SETOF uuid LANGUAGE plpgsql AS $fn$
DECLARE
    given bigint := (SELECT count(*) FROM runs_permit p
                      WHERE p.scope = the_scope AND p.key = the_key AND p.granted_at IS NOT NULL);
    first runs_permit;
BEGIN
    LOOP
        SELECT * INTO first FROM runs_permit p WHERE p.scope = the_scope AND p.key = the_key AND p.granted_at IS NULL
         ORDER BY p.priority DESC, p.asked_at, p.run_id, p.step LIMIT 1;
        EXIT WHEN NOT FOUND OR given >= first.at_once;
        UPDATE runs_permit p SET granted_at = clock_timestamp() WHERE p.run_id = first.run_id AND p.step = first.step;
        given := given + 1;
        RETURN NEXT first.run_id;
    END LOOP;
END $fn$;

-- Whether a step may be sent now: granted; in line, with its place; or not before a time (POSIX seconds). Asked again, it
-- keeps its place and its time. `woken`: other runs that were granted a permit on the way.
-- A rate remembers the last `calls` sends: never more of them in any `per` seconds. Who must wait is told a time of its
-- own, behind the others that were told one, so that they do not all come back at once; who comes back late finds that
-- newcomers have left room for it. The send is counted here: a crash before it wastes one.
CREATE FUNCTION runs_acquire_v1(
    the_run uuid, the_step int, the_attempt int, tool text, limit_key text, the_limit int,
    the_rate_key text, calls int, per double precision
) RETURNS TABLE (verdict text, place bigint, at double precision, woken uuid[]) LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
DECLARE
    the_scope text := 'tool:' || tool;
    others    uuid[] := '{}';
    mine      runs_permit;
    log       double precision[];
    this      double precision;
    free_at   double precision;
    last      double precision;
    overdue   bigint;
BEGIN
    IF the_limit IS NOT NULL THEN
        INSERT INTO runs_throttle (scope, key) VALUES (the_scope, limit_key) ON CONFLICT DO NOTHING;
        PERFORM 1 FROM runs_throttle t WHERE t.scope = the_scope AND t.key = limit_key FOR UPDATE;
    END IF;
    INSERT INTO runs_permit AS p (run_id, step, attempt, scope, key, at_once, priority, asked_at, granted_at, rate_key)
    SELECT the_run, the_step, the_attempt, the_scope, CASE WHEN the_limit IS NOT NULL THEN limit_key END, the_limit, r.priority,
           clock_timestamp(), CASE WHEN the_limit IS NULL THEN clock_timestamp() END, the_rate_key
      FROM runs_run r WHERE r.id = the_run
    ON CONFLICT (run_id, step) DO UPDATE SET attempt = the_attempt WHERE p.attempt <> the_attempt;
    IF the_limit IS NOT NULL THEN
        others := ARRAY(SELECT g FROM runs_grant_v1(the_scope, limit_key) g WHERE g <> the_run);
    END IF;
    SELECT * INTO mine FROM runs_permit p WHERE p.run_id = the_run AND p.step = the_step;
    IF mine.granted_at IS NULL THEN
        RETURN QUERY SELECT 'in line', 1 + count(*), NULL::double precision, others FROM runs_permit p
            WHERE p.scope = the_scope AND p.key = limit_key AND p.granted_at IS NULL
              AND (-p.priority, p.asked_at, p.run_id, p.step) < (-mine.priority, mine.asked_at, mine.run_id, mine.step);
        RETURN;
    END IF;
    IF NOT mine.taken THEN
        UPDATE runs_permit p SET taken = true WHERE p.run_id = the_run AND p.step = the_step;
    END IF;
    IF calls IS NOT NULL THEN
        INSERT INTO runs_throttle (scope, key) VALUES ('rate:' || tool, the_rate_key) ON CONFLICT DO NOTHING;
        SELECT t.sent INTO log FROM runs_throttle t WHERE t.scope = 'rate:' || tool AND t.key = the_rate_key FOR UPDATE;
        this := extract(epoch FROM clock_timestamp());
        log := ARRAY(SELECT s FROM unnest(log) s WHERE s > this - per ORDER BY s);
        free_at := CASE WHEN cardinality(log) >= calls THEN log[cardinality(log) - calls + 1] + per ELSE this END;
        SELECT max(p.not_before), count(*) FILTER (WHERE p.not_before <= this) INTO last, overdue FROM runs_permit p
         WHERE p.scope = the_scope AND p.rate_key = the_rate_key AND p.not_before > this - 5
           AND (p.run_id, p.step) <> (the_run, the_step);
        IF mine.not_before > this THEN
            at := mine.not_before;
        ELSIF mine.not_before IS NULL AND (last > this OR cardinality(log) + overdue >= calls) THEN
            at := greatest(free_at, last + per / calls, this + per / calls * least(overdue, 1));
        ELSE
            at := free_at;
        END IF;
        IF at > this THEN
            UPDATE runs_permit p SET not_before = at WHERE p.run_id = the_run AND p.step = the_step;
            RETURN QUERY SELECT 'not before', NULL::bigint, at, others;
            RETURN;
        END IF;
        UPDATE runs_throttle t SET sent = log || this WHERE t.scope = 'rate:' || tool AND t.key = the_rate_key;
        UPDATE runs_permit p SET not_before = NULL WHERE p.run_id = the_run AND p.step = the_step;
    END IF;
    RETURN QUERY SELECT 'granted', NULL::bigint, NULL::double precision, others;
END $fn$;

-- Give up permits and places in line of a run (steps NULL: all); the first in line gets what is free, in this
-- transaction. Gives the runs that it was granted to.
CREATE FUNCTION runs_free_v1(the_run uuid, the_steps int[]) RETURNS SETOF uuid LANGUAGE plpgsql AS $fn$
DECLARE
    place record;
BEGIN
    FOR place IN
        SELECT DISTINCT p.scope, p.key FROM runs_permit p
         WHERE p.run_id = the_run AND (the_steps IS NULL OR p.step = ANY (the_steps)) AND p.key IS NOT NULL
         ORDER BY p.scope, p.key
    LOOP
        PERFORM 1 FROM runs_throttle t WHERE t.scope = place.scope AND t.key = place.key FOR UPDATE;
        DELETE FROM runs_permit p WHERE p.run_id = the_run AND p.scope = place.scope AND p.key = place.key
           AND (the_steps IS NULL OR p.step = ANY (the_steps));
        RETURN QUERY SELECT g FROM runs_grant_v1(place.scope, place.key) g;
    END LOOP;
    DELETE FROM runs_permit p WHERE p.run_id = the_run AND p.key IS NULL
       AND (the_steps IS NULL OR p.step = ANY (the_steps));
END $fn$;
