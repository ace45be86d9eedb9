-- The byte rules of the chain. Each field is preceded by its 4-byte length, NULL = ffffffff; integers 8 bytes, text UTF-8.
-- STABLE, because convert_to() and extract() are: declared IMMUTABLE they would not be inlined (40 us a call).
CREATE FUNCTION journal_entry_digest(kind text, v int, step int, settles int, epoch bigint, actor text, digest bytea)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT sha256(int4send(octet_length(kind)) || convert_to(kind, 'UTF8')
        || '\x00000008'::bytea || int8send(v)
        || coalesce('\x00000008'::bytea || int8send(step), '\xffffffff'::bytea)
        || coalesce('\x00000008'::bytea || int8send(settles), '\xffffffff'::bytea)
        || '\x00000008'::bytea || int8send(epoch)
        || int4send(octet_length(actor)) || convert_to(actor, 'UTF8')
        || int4send(octet_length(digest)) || digest) $$;

CREATE FUNCTION journal_us(at timestamptz) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT int8send((extract(epoch FROM at) * 1000000)::bigint) $$;

CREATE FUNCTION journal_is_steering(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT kind IN ('SIGNAL', 'ANSWER', 'APPROVAL', 'RECONCILE', 'CONTROL', 'PIN', 'CHILD') $$;

CREATE TYPE journal_answer AS (run_id uuid, verdict text, first_seq bigint, last_seq bigint, recorded_at timestamptz);

-- The append of a worker's batch: one call, one COMMIT. At most ONE append a run in a batch.
-- The client sends the payload digest though it is not stored (salt and body give it again): the server's own sha256 takes
-- 7 us for a body of 450 bytes and 0.5 ms for one of 32 KiB, the client's 0.8 us with the sending, 30 us (measured).
-- In arrays 0 stands for a NULL step or settles (steps count from 1): an array of NULLs has no type for the driver.
-- 1. Heads are locked in order; a locked one is skipped (busy). 2. The next statement has a newer snapshot, so it reads
-- each locked head as its last holder left it. 3. One statement judges, allots seq, links, inserts, moves the heads.
-- 4. Only if an intent turns out settled already, the subtransaction is undone and the batch judged again without it.
CREATE FUNCTION journal_append_v1(
    runs uuid[], epochs bigint[], numbers bigint[], seens bigint[],
    e_of int[], e_decision boolean[], e_kind text[], e_v int[], e_step int[], e_settles int[], e_actor text[],
    e_salt bytea[], e_digest bytea[], e_body bytea[]
) RETURNS SETOF journal_answer LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
DECLARE
    locked  uuid[];
    settled int[] := '{}';
    answers journal_answer[];
BEGIN
    LOOP
        BEGIN                 -- the lock too is inside: locked outside and updated inside, each commit would make a multixact
            locked := ARRAY(SELECT run_id FROM journal_head WHERE run_id = ANY (runs)
                            ORDER BY run_id FOR NO KEY UPDATE SKIP LOCKED);
            WITH asked AS MATERIALIZED (
                SELECT *, NOT again AND (verdict = 'written' OR verdict = 'refused' AND tells) AS writes
                FROM (
                    SELECT a.of, a.run, a.number, h.epoch, h.last_seq, h.last_hash,
                           greatest(clock_timestamp(), h.last_recorded_at) AS at,
                           h.append_first_seq, h.append_last_seq, h.append_at, d.tells,
                           l.run IS NOT NULL AND h.epoch = a.epoch AND a.number <= h.last_append_no AS again,
                           a.number = h.last_append_no AS same,
                           CASE WHEN h.run_id IS NULL THEN 'no such run'
                                WHEN l.run IS NULL THEN 'busy'
                                WHEN h.epoch <> a.epoch THEN 'lost'
                                WHEN a.number = h.last_append_no AND h.append_refused THEN 'refused'
                                WHEN a.number <= h.last_append_no THEN 'already'
                                WHEN a.of = ANY (settled) THEN 'settled'
                                WHEN h.last_steering_seq > a.seen AND d.decides THEN 'refused'
                                ELSE 'written' END AS verdict
                    FROM unnest(runs, epochs, numbers, seens) WITH ORDINALITY AS a (run, epoch, number, seen, of)
                    LEFT JOIN journal_head h ON h.run_id = a.run
                    LEFT JOIN unnest(locked) AS l (run) ON l.run = a.run
                    LEFT JOIN (SELECT of, bool_or(decision) AS decides, NOT bool_and(decision) AS tells
                               FROM unnest(e_of, e_decision) AS d (of, decision) GROUP BY of) d ON d.of = a.of
                ) judged
            ), entry AS MATERIALIZED (   -- windows, not a join of links to entries: estimated at one row that was quadratic
                SELECT *, CASE WHEN seq = head_seq + entries THEN
                       sha256(last_hash || uuid_send(run) || int8send(head_seq + 1) || journal_us(at) || digests) END AS link
                FROM (
                    SELECT *, count(*) OVER w AS entries, string_agg(digest, ''::bytea) OVER w AS digests,
                           max(seq) FILTER (WHERE journal_is_steering(kind)) OVER w AS steering
                    FROM (
                        SELECT q.run, q.number, q.verdict, q.epoch, q.at, q.last_hash, q.last_seq AS head_seq,
                               e.of, e.place, e.kind, e.v, nullif(e.step, 0) AS step, nullif(e.settles, 0) AS settles,
                               e.actor, e.salt, e.body, q.last_seq + row_number() OVER (PARTITION BY e.of ORDER BY e.place) AS seq,
                               journal_entry_digest(e.kind, e.v, nullif(e.step, 0), nullif(e.settles, 0), q.epoch, e.actor,
                                                    e.digest) AS digest
                        FROM unnest(e_of, e_decision, e_kind, e_v, e_step, e_settles, e_actor, e_salt, e_digest, e_body)
                             WITH ORDINALITY AS e (of, decision, kind, v, step, settles, actor, salt, digest, body, place)
                        JOIN asked q ON q.of = e.of AND q.writes AND (q.verdict = 'written' OR NOT e.decision)
                    ) one
                    WINDOW w AS (PARTITION BY of ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
                ) all_of
            ), inserted AS (
                INSERT INTO journal_entry (run_id, seq, epoch, recorded_at, v, step, settles, kind, actor, salt, spot, link, body)
                SELECT run, seq, epoch, at, v, step, settles, kind, actor, salt, substring(digest FOR 4), link, body FROM entry
            ), moved AS (
                UPDATE journal_head h SET last_seq = n.seq, last_hash = n.link, last_recorded_at = n.at,
                       last_steering_seq = coalesce(n.steering, h.last_steering_seq), last_append_no = n.number,
                       append_first_seq = n.head_seq + 1, append_last_seq = n.seq, append_at = n.at,
                       append_refused = n.verdict = 'refused'
                FROM entry n WHERE h.run_id = n.run AND n.link IS NOT NULL
            )
            SELECT array_agg(answer) INTO answers FROM (
                SELECT (run, verdict, head_seq + 1, seq, at)::journal_answer FROM entry WHERE link IS NOT NULL
                UNION ALL
                SELECT CASE WHEN again AND same
                            THEN (run, verdict, append_first_seq, append_last_seq, append_at)::journal_answer
                            ELSE (run, verdict, NULL, NULL, NULL)::journal_answer END FROM asked WHERE NOT writes
            ) AS a (answer);
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            IF settled <> '{}' THEN RAISE; END IF;
            settled := ARRAY(SELECT DISTINCT e.of FROM unnest(e_of, e_settles) AS e (of, settles)
                             JOIN journal_entry x ON x.run_id = runs[e.of] AND x.settles = e.settles);
            IF settled = '{}' THEN RAISE; END IF;
        END;
    END LOOP;
    RETURN QUERY SELECT * FROM unnest(answers);
END $fn$;

-- The same for a batch of one, in plain statements: half of the server's time (0.3 of 0.6 ms, measured). It knows only the
-- common answers; whatever else there is to say (busy, refused, settled), the statement above says.
CREATE FUNCTION journal_append_one_v1(
    runs uuid[], epochs bigint[], numbers bigint[], seens bigint[],
    e_of int[], e_decision boolean[], e_kind text[], e_v int[], e_step int[], e_settles int[], e_actor text[],
    e_salt bytea[], e_digest bytea[], e_body bytea[]
) RETURNS SETOF journal_answer LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
DECLARE
    head     journal_head;
    common   boolean := false;
    at       timestamptz;
    digests  bytea[];
    new_link bytea;
    new_seq  bigint;
BEGIN
    BEGIN
        SELECT * INTO head FROM journal_head WHERE run_id = runs[1] FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND AND head.epoch = epochs[1] AND numbers[1] > head.last_append_no
           AND (head.last_steering_seq <= seens[1] OR NOT true = ANY (e_decision)) THEN
            common := true;
            at := greatest(clock_timestamp(), head.last_recorded_at);
            new_seq := head.last_seq + cardinality(e_kind);
            digests := ARRAY(SELECT journal_entry_digest(e.kind, e.v, nullif(e.step, 0), nullif(e.settles, 0), head.epoch,
                                                         e.actor, e.digest)
                             FROM unnest(e_kind, e_v, e_step, e_settles, e_actor, e_digest) WITH ORDINALITY
                                  AS e (kind, v, step, settles, actor, digest, n) ORDER BY n);
            new_link := sha256(head.last_hash || uuid_send(head.run_id) || int8send(head.last_seq + 1) || journal_us(at)
                               || (SELECT string_agg(d, ''::bytea ORDER BY n) FROM unnest(digests) WITH ORDINALITY AS t (d, n)));
            INSERT INTO journal_entry (run_id, seq, epoch, recorded_at, v, step, settles, kind, actor, salt, spot, link, body)
                SELECT head.run_id, head.last_seq + n, head.epoch, at, v, nullif(step, 0), nullif(settles, 0), kind, actor, salt,
                       substring(digests[n] FOR 4), CASE WHEN n = cardinality(e_kind) THEN new_link END, body
                FROM unnest(e_kind, e_v, e_step, e_settles, e_actor, e_salt, e_body) WITH ORDINALITY
                     AS e (kind, v, step, settles, actor, salt, body, n);
            UPDATE journal_head SET last_seq = new_seq, last_hash = new_link, last_recorded_at = at,
                   last_steering_seq = coalesce((SELECT head.last_seq + max(n) FROM unnest(e_kind) WITH ORDINALITY AS k (kind, n)
                                                 WHERE journal_is_steering(kind)), last_steering_seq),
                   last_append_no = numbers[1], append_first_seq = head.last_seq + 1, append_last_seq = new_seq, append_at = at,
                   append_refused = false
                WHERE run_id = head.run_id;
        END IF;
    EXCEPTION WHEN unique_violation THEN
        common := false;
    END;
    IF common THEN
        RETURN QUERY SELECT head.run_id, 'written', head.last_seq + 1, new_seq, at;
    ELSE
        RETURN QUERY SELECT * FROM journal_append_v1(runs, epochs, numbers, seens, e_of, e_decision, e_kind, e_v, e_step,
                                                     e_settles, e_actor, e_salt, e_digest, e_body);
    END IF;
END $fn$;

-- A person's append: waits for the head (lock_timeout of the caller), carries the head's epoch, leaves append_no alone.
-- The caller's transaction takes the head here or before, then touches the run row, then commits.
CREATE FUNCTION journal_append_person_v1(
    the_run uuid, the_request text, e_kind text[], e_v int[], e_step int[], e_settles int[], e_actor text[],
    e_salt bytea[], e_digest bytea[], e_body bytea[]
) RETURNS journal_answer LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
DECLARE
    head     journal_head;
    answer   journal_answer;
    at       timestamptz;
    digests  bytea[];
    new_link bytea;
    new_seq  bigint;
BEGIN
    SELECT * INTO head FROM journal_head WHERE run_id = the_run FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN (the_run, 'no such run', NULL, NULL, NULL)::journal_answer; END IF;
    SELECT the_run, 'already', x.seq,
           (SELECT min(y.seq) FROM journal_entry y WHERE y.run_id = the_run AND y.seq >= x.seq AND y.link IS NOT NULL),
           x.recorded_at
        INTO answer FROM journal_entry x WHERE x.run_id = the_run AND x.request_id = the_request;
    IF FOUND THEN RETURN answer; END IF;
    IF EXISTS (SELECT FROM journal_entry x WHERE x.run_id = the_run AND x.settles = ANY (e_settles)) THEN
        RETURN (the_run, 'settled', NULL, NULL, NULL)::journal_answer;
    END IF;
    at := greatest(clock_timestamp(), head.last_recorded_at);
    new_seq := head.last_seq + cardinality(e_kind);
    digests := ARRAY(SELECT journal_entry_digest(e.kind, e.v, nullif(e.step, 0), nullif(e.settles, 0), head.epoch, e.actor, e.digest)
                     FROM unnest(e_kind, e_v, e_step, e_settles, e_actor, e_digest) WITH ORDINALITY
                          AS e (kind, v, step, settles, actor, digest, n) ORDER BY n);
    new_link := sha256(head.last_hash || uuid_send(the_run) || int8send(head.last_seq + 1) || journal_us(at)
                       || (SELECT string_agg(d, ''::bytea ORDER BY n) FROM unnest(digests) WITH ORDINALITY AS t (d, n)));
    INSERT INTO journal_entry (run_id, seq, epoch, recorded_at, v, step, settles, kind, actor, request_id, salt, spot, link, body)
        SELECT the_run, head.last_seq + n, head.epoch, at, v, nullif(step, 0), nullif(settles, 0), kind, actor,
               CASE WHEN n = 1 THEN the_request END, salt, substring(digests[n] FOR 4),
               CASE WHEN n = cardinality(e_kind) THEN new_link END, body
        FROM unnest(e_kind, e_v, e_step, e_settles, e_actor, e_salt, e_body) WITH ORDINALITY
             AS e (kind, v, step, settles, actor, salt, body, n);
    UPDATE journal_head SET last_seq = new_seq, last_hash = new_link, last_recorded_at = at,
           last_steering_seq = coalesce((SELECT head.last_seq + max(n) FROM unnest(e_kind) WITH ORDINALITY AS k (kind, n)
                                         WHERE journal_is_steering(kind)), last_steering_seq)
        WHERE run_id = the_run;
    RETURN (the_run, 'written', head.last_seq + 1, new_seq, at)::journal_answer;
END $fn$;

-- A new journal: its head and its first entry, under epoch 0. unique_violation if there is one already.
CREATE FUNCTION journal_begin_v1(the_run uuid, the_kind text, the_v int, the_actor text, e_salt bytea, e_digest bytea, e_body bytea)
RETURNS timestamptz LANGUAGE plpgsql AS $fn$
DECLARE
    at       timestamptz := clock_timestamp();
    digest   bytea := journal_entry_digest(the_kind, the_v, NULL, NULL, 0, the_actor, e_digest);
    new_link bytea := sha256(decode(repeat('00', 32), 'hex') || uuid_send(the_run) || int8send(1) || journal_us(at) || digest);
BEGIN
    INSERT INTO journal_head (run_id, last_seq, last_recorded_at, last_steering_seq, last_hash)
    VALUES (the_run, 1, at, CASE WHEN journal_is_steering(the_kind) THEN 1 ELSE 0 END, new_link);
    INSERT INTO journal_entry (run_id, seq, epoch, recorded_at, v, kind, actor, salt, spot, link, body)
    VALUES (the_run, 1, 0, at, the_v, the_kind, the_actor, e_salt, substring(digest FOR 4), new_link, e_body);
    RETURN at;
END $fn$;

-- A new epoch fences all that carry an older one; append numbers start anew. The caller holds the heads (claims), or takes
-- them here in order (a person's DONE).
CREATE FUNCTION journal_raise_epochs_v1(runs uuid[]) RETURNS TABLE (run_id uuid, epoch bigint, last_seq bigint)
LANGUAGE plpgsql AS $fn$
#variable_conflict use_column
BEGIN
    PERFORM 1 FROM journal_head h WHERE h.run_id = ANY (runs) ORDER BY h.run_id FOR NO KEY UPDATE;
    RETURN QUERY UPDATE journal_head h
        SET epoch = h.epoch + 1, last_append_no = 0, append_first_seq = NULL, append_last_seq = NULL, append_at = NULL,
            append_refused = false
        WHERE h.run_id = ANY (runs) RETURNING h.run_id, h.epoch, h.last_seq;
END $fn$;
