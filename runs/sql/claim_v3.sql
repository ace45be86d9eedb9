-- Claim a run for a session that serves `the_release`: as runs_claim_v2, unless the run is pinned to another release by now
-- (a message from before its pin was changed): then `pinned elsewhere`, and the run is left as it is.
CREATE FUNCTION runs_claim_v3(
    me uuid, the_run uuid, the_release text, may_count boolean, at_once int, look_urgent boolean
) RETURNS TABLE (
    verdict text, epoch bigint, last_seq bigint, taken_from uuid, crashes int, taken_over_at timestamptz,
    urgent uuid, gates jsonb, heard_at double precision
) LANGUAGE plpgsql AS $fn$
BEGIN
    PERFORM 1 FROM journal_head h WHERE h.run_id = the_run FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM runs_run r WHERE r.id = the_run AND r.release_id <> the_release) THEN
        RETURN QUERY SELECT 'pinned elsewhere', NULL::bigint, NULL::bigint, NULL::uuid, NULL::int, NULL::timestamptz,
               NULL::uuid, (SELECT jsonb_object_agg(g.scope, g.reason) FROM runs_gate g WHERE g.lifted_at IS NULL),
               extract(epoch FROM clock_timestamp())::float8;
        RETURN;
    END IF;
    RETURN QUERY SELECT * FROM runs_claim_v2(me, the_run, may_count, at_once, look_urgent);
END $fn$;
