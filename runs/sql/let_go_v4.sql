-- Let a run go at a checkpoint without an append. Refused (false) when the epoch is not ours any more, or when a steering
-- entry came that the worker has not read: then there is something to do.
CREATE FUNCTION runs_let_go_v4(
    the_run uuid, the_epoch bigint, seen bigint, new_status text, why text, wake double precision, waiting jsonb,
    children uuid[], any_child boolean, signals jsonb, listed jsonb
) RETURNS boolean LANGUAGE plpgsql AS $fn$
DECLARE
    head journal_head;
BEGIN
    SELECT * INTO head FROM journal_head h WHERE h.run_id = the_run FOR NO KEY UPDATE;
    IF head.epoch IS DISTINCT FROM the_epoch OR head.last_steering_seq > seen THEN
        RETURN false;
    END IF;
    UPDATE runs_run r SET session_id = NULL, status = new_status, reason = why, since = clock_timestamp(),
           wake_at = CASE WHEN children <> '{}' AND runs_joined_v1(children, any_child) THEN clock_timestamp()
                          WHEN wake > 0 THEN to_timestamp(wake) END,
           intents = waiting, as_of_seq = head.last_seq,
           awaits = children, awaits_any = any_child, awaits_signals = signals,
           at = coalesce(listed->>'at', r.at), tokens = coalesce((listed->>'tokens')::bigint, r.tokens),
           tools = CASE WHEN listed ? 'tools' THEN ARRAY(SELECT jsonb_array_elements_text(listed->'tools')) ELSE r.tools END,
           cost = coalesce((listed->>'cost')::float8, r.cost), region = coalesce(listed->>'region', r.region),
           denials = coalesce((listed->>'denials')::int, r.denials), doubts = coalesce((listed->>'doubts')::int, r.doubts),
           person_acted = coalesce((listed->>'person')::boolean, r.person_acted)
     WHERE r.id = the_run AND r.ended_at IS NULL;
    RETURN true;
END $fn$;
