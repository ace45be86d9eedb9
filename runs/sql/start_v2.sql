-- Start a run: its row, its journal's head and START, in one statement. A request key or a business id that is taken gives
-- no row back: a start under the same that is still open is waited for, so that the caller then finds that run. A release
-- that is not recorded gives a row of NULLs.
CREATE FUNCTION runs_start_v2(
    given_id uuid, the_agent text, the_release text, the_labels jsonb, the_key text, the_key_digest bytea,
    the_priority int, deadline double precision, business text,
    the_actor text, e_salt bytea, e_digest bytea, e_body bytea
) RETURNS TABLE (id uuid, created_at timestamptz) LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
DECLARE
    the_id  uuid := coalesce(given_id, holdfast_uuid7());
    created timestamptz;
BEGIN
    IF NOT EXISTS (SELECT FROM runs_release WHERE id = the_release) THEN
        RETURN QUERY SELECT NULL::uuid, NULL::timestamptz;
        RETURN;
    END IF;
    INSERT INTO runs_run (id, agent, release_id, labels, request_key, request_digest, reason, intents, as_of_seq,
                          priority, deadline_at, business_id)
    VALUES (the_id, the_agent, the_release, the_labels, the_key, the_key_digest, 'waits for a worker', '[]', 1,
            the_priority, CASE WHEN deadline > 0 THEN to_timestamp(deadline) END, business)
    ON CONFLICT DO NOTHING RETURNING created_at INTO created;
    IF created IS NULL THEN
        RETURN;
    END IF;
    PERFORM journal_begin_v1(the_id, 'START', 1, the_actor, e_salt, e_digest, e_body);
    RETURN QUERY SELECT the_id, created;
END $fn$;
