-- Claim a run for a session that serves `the_release`: as runs_claim_v3, unless a gate is over it. Then it is not taken: no
-- epoch rises, and it keeps its place in the queue.
-- Verdicts beside those of v3:
--   gated       over the agent, the release or all: a queued run stays queued, and says the gate. One that its worker left
--               behind is taken all the same: the take-over finds out what is in doubt, and lets it go at the gate.
--   gated here  over this worker or its region: another one may take it.
-- A run that is being cancelled is refused by none: it sends nothing more.
CREATE FUNCTION runs_claim_v4(
    me uuid, the_run uuid, the_release text, may_count boolean, at_once int, look_urgent boolean
) RETURNS TABLE (
    verdict text, epoch bigint, last_seq bigint, taken_from uuid, crashes int, taken_over_at timestamptz,
    urgent uuid, gates jsonb, heard_at double precision
) LANGUAGE plpgsql AS $fn$
DECLARE
    row     runs_run;
    stop    runs_gate;
    refusal text;
BEGIN
    IF EXISTS (SELECT FROM runs_gate g WHERE g.lifted_at IS NULL) THEN
        PERFORM 1 FROM journal_head h WHERE h.run_id = the_run FOR NO KEY UPDATE;
        SELECT * INTO row FROM runs_run r WHERE r.id = the_run FOR NO KEY UPDATE;
        stop := runs_gate_over_v1(row.agent, row.release_id);
        IF stop.id IS NOT NULL AND row.status = 'queued' AND row.session_id IS NULL THEN
            refusal := 'gated';
        ELSIF row.session_id IS DISTINCT FROM me AND runs_place_gate_v1(me) IS NOT NULL THEN
            refusal := 'gated here';
        END IF;
        IF refusal IS NOT NULL AND NOT runs_is_cancelling_v1(the_run) THEN
            IF refusal = 'gated' THEN
                UPDATE runs_run r SET reason = left('gate ' || stop.scope || ': ' || stop.reason, 2000),
                       dispatched_at = NULL, dispatches = 0
                 WHERE r.id = the_run;
            END IF;
            RETURN QUERY SELECT refusal, NULL::bigint, NULL::bigint, NULL::uuid, NULL::int, NULL::timestamptz, NULL::uuid,
                   (SELECT jsonb_object_agg(g.scope, g.reason) FROM runs_gate g WHERE g.lifted_at IS NULL),
                   extract(epoch FROM clock_timestamp())::float8;
            RETURN;
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM runs_claim_v3(me, the_run, the_release, may_count, at_once, look_urgent);
END $fn$;

-- The widest open gate that stops runs of this release wherever they are; no row: none does.
CREATE FUNCTION runs_gate_over_v1(the_agent text, the_release text) RETURNS runs_gate LANGUAGE sql STABLE AS $fn$
    SELECT g FROM runs_gate g
     WHERE g.lifted_at IS NULL
       AND (g.scope IN ('all', 'agent:' || the_agent)
            OR starts_with(g.scope, 'release:')
               AND g.scope = (SELECT 'release:' || r.agent || '@' || r.version FROM runs_release r WHERE r.id = the_release))
     ORDER BY length(g.scope), g.id LIMIT 1
$fn$;

-- The scope of an open gate over this session's worker or its region. A child of a prefork pool is named `W-<pid>`, and a
-- gate over `worker:W` is over it too.
CREATE FUNCTION runs_place_gate_v1(the_session uuid) RETURNS text LANGUAGE sql STABLE AS $fn$
    SELECT g.scope FROM runs_workersession s
      JOIN runs_gate g ON g.lifted_at IS NULL
       AND (g.scope IN ('worker:' || s.name, 'region:' || s.region)
            OR s.pool = 'prefork' AND g.scope = 'worker:' || regexp_replace(s.name, '-[0-9]+$', ''))
     WHERE s.id = the_session LIMIT 1
$fn$;

-- Whether somebody has asked to cancel the run.
CREATE FUNCTION runs_is_cancelling_v1(the_run uuid) RETURNS boolean LANGUAGE sql STABLE AS $fn$
    SELECT EXISTS (SELECT FROM journal_head h WHERE h.run_id = the_run AND h.last_steering_seq > 0)
       AND EXISTS (SELECT FROM journal_entry e WHERE e.run_id = the_run AND e.kind = 'CONTROL'
                      AND position('"verb":"cancel"'::bytea IN e.body) > 0)
$fn$;
