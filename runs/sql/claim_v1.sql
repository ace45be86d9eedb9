-- Claim a run for a session: the epoch rises, append numbers start anew. Head first, then the run row.
--
-- Free is a run that no session holds and that is due, a run of an ended session, and a run of this very session (a claim
-- whose answer was lost; the process asks only for runs that it does not drive). Expiry is never judged here.
--
-- A crash is counted when the last session neither let the run go nor was draining; progress (a settling OBS, a model's
-- PLAN) since the last count starts it anew. With `may_count` false a run that takes turns is left for later: after its
-- second crash in a row a run is driven one at a time in a process, so that it alone is blamed for a third.
-- Verdicts: claimed, held (a live session has it, or it is not due), counted, ended, no session.
CREATE FUNCTION runs_claim_v1(me uuid, the_run uuid, may_count boolean)
RETURNS TABLE (verdict text, epoch bigint, last_seq bigint, taken_from uuid, crashes int, taken_over_at timestamptz)
LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
DECLARE
    head       journal_head;
    row        runs_run;
    holder     runs_workersession;
    refusal    text;
    orphaned   boolean;
    progressed boolean;
    count_now  int;
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
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, NULL::bigint, NULL::bigint, NULL::uuid, NULL::int, NULL::timestamptz;
        RETURN;
    END IF;
    PERFORM journal_raise_epochs_v1(ARRAY[the_run]);
    RETURN QUERY UPDATE runs_run r SET session_id = me, epoch = head.epoch + 1, status = 'running', reason = '',
            since = CASE WHEN r.status = 'running' THEN r.since ELSE clock_timestamp() END, wake_at = NULL, intents = '[]',
            dispatches = 0, dispatched_at = NULL, crashes = count_now,
            crash_seq = CASE WHEN count_now <> row.crashes OR progressed THEN head.last_seq ELSE row.crash_seq END,
            taken_over_at = CASE WHEN orphaned THEN clock_timestamp() ELSE r.taken_over_at END
        WHERE r.id = the_run
        RETURNING 'claimed', r.epoch, head.last_seq, CASE WHEN orphaned THEN holder.id END, r.crashes, r.taken_over_at;
END $fn$;
