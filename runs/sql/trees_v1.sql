-- Whether what a run waits for of its children has come: one of them has ended, or all have.
CREATE FUNCTION runs_joined_v1(children uuid[], any_child boolean) RETURNS boolean LANGUAGE sql STABLE AS $fn$
    SELECT children <> '{}' AND CASE WHEN any_child
        THEN EXISTS (SELECT FROM runs_run c WHERE c.id = ANY (children) AND c.ended_at IS NOT NULL)
        ELSE NOT EXISTS (SELECT FROM runs_run c WHERE c.id = ANY (children) AND c.ended_at IS NULL) END
$fn$;

-- A child's row, its journal's head and START, in the transaction of its parent's CHILD entry. Sent again, it changes
-- nothing. unique_violation if another open run of the agent has its business id.
CREATE FUNCTION runs_spawn_v1(
    the_parent uuid, the_step int, the_child uuid, the_agent text, the_release text, the_labels jsonb,
    deadline double precision, business text, e_salt bytea, e_digest bytea, e_body bytea
) RETURNS void LANGUAGE plpgsql AS $fn$
BEGIN
    INSERT INTO runs_run (id, agent, release_id, labels, reason, intents, as_of_seq, parent_id, parent_step, priority,
                          deadline_at, business_id)
    SELECT the_child, the_agent, the_release, the_labels, 'waits for a worker', '[]', 1, the_parent, the_step, p.priority,
           CASE WHEN deadline > 0 THEN to_timestamp(deadline) END, nullif(business, '')
      FROM runs_run p WHERE p.id = the_parent
    ON CONFLICT (id) DO NOTHING;
    IF FOUND THEN
        PERFORM journal_begin_v1(the_child, 'START', 1, 'parent', e_salt, e_digest, e_body);
    END IF;
END $fn$;

-- A child has ended: its parent is due, if it has let go of its worker to wait for this. A parent that is driven, or waits
-- for something else, reads its children when it next lets go.
CREATE FUNCTION runs_tell_parent_v1(the_child uuid) RETURNS TABLE (parent uuid, release_id varchar) LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
DECLARE
    the_parent uuid := (SELECT parent_id FROM runs_run WHERE id = the_child);
BEGIN
    PERFORM 1 FROM journal_head WHERE run_id IN (the_parent, the_child) ORDER BY run_id FOR NO KEY UPDATE;
    UPDATE runs_run SET parent_told = true WHERE id = the_child AND ended_at IS NOT NULL;
    IF FOUND THEN
        RETURN QUERY UPDATE runs_run p SET wake_at = clock_timestamp()
            WHERE p.id = the_parent AND p.status = 'waiting' AND p.session_id IS NULL AND the_child = ANY (p.awaits)
              AND runs_joined_v1(p.awaits, p.awaits_any)
            RETURNING p.id, p.release_id;
    END IF;
END $fn$;
