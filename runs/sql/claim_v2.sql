-- Claim a run for a session: the epoch rises, append numbers start anew. Head first, then the run row, then the row of the
-- agent's limit. The gates that are open come along: what was committed before `heard_at` is among them.
--
-- Free is a run that no session holds and that is due, a run of an ended session, and a run of this very session (a claim
-- whose answer was lost; the process asks only for runs that it does not drive). Expiry is never judged here.
--
-- A crash is counted when the last session neither let the run go nor was draining; progress (a settling OBS, a model's
-- PLAN) since the last count starts it anew. With `may_count` false a run that takes turns is left for later: after its
-- second crash in a row a run is driven one at a time in a process, so that it alone is blamed for a third.
--
-- `at_once`: how many runs of the agent may be in flight. An orphan counts until it is taken over, which is never refused;
-- nor is a run that is being cancelled: it makes no call any more. Who is refused waits queued, and goes before whoever
-- comes later with no higher priority.
-- Verdicts: claimed, held (a live session has it, or it is not due), counted, limited, urgent (another queued run of the
-- release has a higher priority: `urgent`), ended, no session.
CREATE FUNCTION runs_claim_v2(me uuid, the_run uuid, may_count boolean, at_once int, look_urgent boolean)
RETURNS TABLE (
    verdict text, epoch bigint, last_seq bigint, taken_from uuid, crashes int, taken_over_at timestamptz,
    urgent uuid, gates jsonb, heard_at double precision
) LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
DECLARE
    head       journal_head;
    row        runs_run;
    holder     runs_workersession;
    refusal    text;
    orphaned   boolean;
    progressed boolean;
    count_now  int;
    sooner     uuid;
    heard      double precision;
    open_gates jsonb;
BEGIN
    SELECT * INTO head FROM journal_head h WHERE h.run_id = the_run FOR NO KEY UPDATE;
    SELECT * INTO row FROM runs_run r WHERE r.id = the_run FOR NO KEY UPDATE;
    SELECT * INTO holder FROM runs_workersession s WHERE s.id = row.session_id;
    orphaned := coalesce(holder.ended_at IS NOT NULL AND holder.id <> me, false);
    progressed := row.crashes > 0 AND EXISTS (
        SELECT FROM journal_entry e WHERE e.run_id = the_run AND e.seq > row.crash_seq
           AND (e.settles IS NOT NULL OR e.kind = 'PLAN' AND e.actor = 'model'));
    count_now := CASE WHEN progressed THEN 0 ELSE row.crashes END
               + CASE WHEN orphaned AND holder.draining_at IS NULL THEN 1 ELSE 0 END;
    heard := extract(epoch FROM clock_timestamp());
    open_gates := (SELECT jsonb_object_agg(g.scope, g.reason) FROM runs_gate g WHERE g.lifted_at IS NULL);
    PERFORM 1 FROM runs_workersession s WHERE s.id = me AND s.ended_at IS NULL FOR KEY SHARE;
    refusal := CASE
        WHEN row.id IS NULL OR row.status IN ('done', 'failed', 'cancelled') THEN 'ended'
        WHEN NOT FOUND THEN 'no session'
        WHEN orphaned OR holder.id = me THEN NULL
        WHEN holder.id IS NOT NULL THEN 'held'
        WHEN row.status NOT IN ('queued', 'running', 'waiting_for_version')
             AND (row.wake_at IS NULL OR row.wake_at > clock_timestamp()) THEN 'held' END;
    IF refusal IS NULL AND count_now > 1 AND NOT may_count THEN
        refusal := 'counted';
    END IF;
    IF refusal IS NULL AND look_urgent THEN
        sooner := (SELECT r.id FROM runs_run r WHERE r.release_id = row.release_id AND r.status = 'queued'
                      AND r.priority > 0 AND r.priority > row.priority AND NOT r.over_limit AND r.crashes < 2
                    ORDER BY r.priority DESC, r.id LIMIT 1);
        refusal := CASE WHEN sooner IS NOT NULL THEN 'urgent' END;
    END IF;
    IF refusal IS NULL AND at_once IS NOT NULL AND row.status <> 'running'
       AND NOT runs_has_room_v1(row, at_once, head.last_steering_seq) THEN
        UPDATE runs_run r SET status = 'queued', over_limit = true, wake_at = NULL, dispatched_at = NULL, dispatches = 0,
               since = CASE WHEN r.status = 'queued' THEN r.since ELSE clock_timestamp() END,
               reason = format('%s is limited to %s at once', r.agent, at_once)
         WHERE r.id = the_run;
        refusal := 'limited';
    END IF;
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, NULL::bigint, NULL::bigint, NULL::uuid, NULL::int, NULL::timestamptz, sooner,
                            open_gates, heard;
        RETURN;
    END IF;
    PERFORM journal_raise_epochs_v1(ARRAY[the_run]);
    RETURN QUERY UPDATE runs_run r SET session_id = me, epoch = head.epoch + 1, status = 'running', reason = '',
            since = CASE WHEN r.status = 'running' THEN r.since ELSE clock_timestamp() END, wake_at = NULL, intents = '[]',
            dispatches = 0, dispatched_at = NULL, over_limit = false, crashes = count_now,
            crash_seq = CASE WHEN count_now <> row.crashes OR progressed THEN head.last_seq ELSE row.crash_seq END,
            taken_over_at = CASE WHEN orphaned THEN clock_timestamp() ELSE r.taken_over_at END
        WHERE r.id = the_run
        RETURNING 'claimed', r.epoch, head.last_seq, CASE WHEN orphaned THEN holder.id END, r.crashes, r.taken_over_at,
                  NULL::uuid, open_gates, heard;
END $fn$;

-- Whether one more run of the agent may be in flight, judged under the lock of the agent's row. Those that wait for a place
-- and come before this one keep theirs.
CREATE FUNCTION runs_has_room_v1(asking runs_run, the_limit int, steered bigint) RETURNS boolean LANGUAGE plpgsql AS $fn$
DECLARE
    taken bigint;
BEGIN
    INSERT INTO runs_throttle AS t (scope, key, at_once) VALUES ('agent:' || asking.agent, '', the_limit)
        ON CONFLICT (scope, key) DO UPDATE SET at_once = the_limit WHERE t.at_once <> the_limit;
    PERFORM 1 FROM runs_throttle t WHERE t.scope = 'agent:' || asking.agent AND t.key = '' FOR UPDATE;
    taken := (SELECT count(*) FROM runs_run r WHERE r.status = 'running' AND r.agent = asking.agent);
    IF taken < the_limit THEN
        taken := taken + (SELECT count(*) FROM (
            SELECT FROM runs_run r WHERE r.agent = asking.agent AND r.status = 'queued' AND r.over_limit
               AND (-r.priority, r.id) < (-asking.priority, asking.id) LIMIT the_limit) AS before);
    END IF;
    RETURN taken < the_limit OR EXISTS (
        SELECT FROM journal_entry e WHERE e.run_id = asking.id AND e.seq = steered AND e.kind = 'CONTROL'
           AND position('"verb":"cancel"'::bytea IN e.body) > 0);
END $fn$;

-- The runs that have a place now among their agent's runs in flight, priority first: to be sent, each but once in
-- `spacing` seconds.
CREATE FUNCTION runs_next_in_flight_v1(the_agent text, spacing double precision)
RETURNS TABLE (run_id uuid, release_id varchar) LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
DECLARE
    room bigint := (SELECT t.at_once FROM runs_throttle t WHERE t.scope = 'agent:' || the_agent AND t.key = '')
                 - (SELECT count(*) FROM runs_run r WHERE r.status = 'running' AND r.agent = the_agent);
BEGIN
    IF room > 0 THEN
        RETURN QUERY
        WITH next AS MATERIALIZED (
            SELECT r.id, r.dispatched_at FROM runs_run r
             WHERE r.agent = the_agent AND r.status = 'queued' AND r.over_limit
             ORDER BY r.priority DESC, r.id LIMIT room),
        head AS MATERIALIZED (
            SELECT h.run_id FROM journal_head h JOIN next n ON n.id = h.run_id
             WHERE n.dispatched_at IS NULL OR n.dispatched_at < clock_timestamp() - make_interval(secs => spacing)
             ORDER BY h.run_id FOR NO KEY UPDATE OF h SKIP LOCKED)
        UPDATE runs_run r SET dispatched_at = clock_timestamp(), dispatches = r.dispatches + 1
          FROM head WHERE r.id = head.run_id AND r.status = 'queued' AND r.over_limit
        RETURNING r.id, r.release_id;
    END IF;
END $fn$;
