-- The journal's tables. PostgreSQL 15 to 18, database encoding UTF8. What is written here is final: see docs/journal-format.md.

DO $do$
BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE 'the database must be UTF8: digests are taken over UTF-8';
    END IF;
    IF current_setting('server_version_num')::int >= 180000 THEN
        CREATE FUNCTION holdfast_uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT uuidv7()';
    ELSE  -- 48 bits of ms, version 7, 12 bits of the ms' fraction (as PostgreSQL 18 does), 62 random bits
        CREATE FUNCTION holdfast_uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $f$
            SELECT encode(int8send((us / 1000) << 16 | 28672 | us % 1000 * 4096 / 1000)
                          || substring(uuid_send(gen_random_uuid()) FROM 9), 'hex')::uuid
            FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) t $f$;
    END IF;
END $do$;

-- One row a run. Every guard of an append is judged on this row, locked. What an append does not change stands first:
-- the WAL record of an update leaves out the common beginning.
CREATE TABLE journal_head (
    run_id            uuid PRIMARY KEY,
    epoch             bigint NOT NULL DEFAULT 0,
    verified_seq      bigint NOT NULL DEFAULT 0,
    verified_at       timestamptz,
    verified_hash     bytea,
    last_steering_seq bigint NOT NULL DEFAULT 0,
    last_seq          bigint NOT NULL DEFAULT 0,
    last_recorded_at  timestamptz,
    last_append_no    bigint NOT NULL DEFAULT 0,         -- of this epoch; and what that append was answered:
    append_first_seq  bigint,
    append_last_seq   bigint,
    append_at         timestamptz,
    append_refused    boolean NOT NULL DEFAULT false,
    last_hash         bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex')
) WITH (fillfactor = 50);                                -- room for HOT updates

CREATE TABLE journal_entry (
    run_id      uuid NOT NULL,
    seq         bigint NOT NULL,
    epoch       bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    v           int NOT NULL,
    step        int,
    settles     int,
    kind        text NOT NULL,
    actor       text NOT NULL,
    request_id  text,                                    -- in the first entry of a person's append
    salt        bytea NOT NULL CHECK (octet_length(salt) IN (0, 16)),   -- empty: the body is a tombstone
    spot        bytea NOT NULL,                          -- first 4 bytes of the entry digest: which entry of an append was changed
    link        bytea,                                   -- in the last entry of an append
    body        bytea NOT NULL,
    PRIMARY KEY (run_id, seq)
) PARTITION BY RANGE (run_id);
ALTER TABLE journal_entry ALTER body SET STORAGE EXTERNAL;              -- never compressed
CREATE UNIQUE INDEX journal_entry_settles ON journal_entry (run_id, settles) WHERE settles IS NOT NULL;
CREATE UNIQUE INDEX journal_entry_request ON journal_entry (run_id, request_id) WHERE request_id IS NOT NULL;

-- What stands for an erased body. It carries the payload digest, so the chain still verifies.
CREATE FUNCTION journal_tombstone(salt bytea, body bytea) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT convert_to('{"$":"erased","digest":"' || encode(sha256(salt || body), 'hex') || '"}', 'UTF8') $$;

-- Lets pass one thing only: the erasing function turning body and salt into their tombstone.
CREATE FUNCTION journal_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND current_setting('holdfast.erasing', true) = OLD.run_id || ':' || OLD.seq
       AND octet_length(OLD.salt) = 16 AND octet_length(NEW.salt) = 0 AND NEW.body = journal_tombstone(OLD.salt, OLD.body)
       AND (NEW.run_id, NEW.seq, NEW.epoch, NEW.recorded_at, NEW.v, NEW.step, NEW.settles, NEW.kind, NEW.actor, NEW.request_id,
            NEW.spot, NEW.link) IS NOT DISTINCT FROM
           (OLD.run_id, OLD.seq, OLD.epoch, OLD.recorded_at, OLD.v, OLD.step, OLD.settles, OLD.kind, OLD.actor, OLD.request_id,
            OLD.spot, OLD.link) THEN
        RETURN NEW;
    END IF;
    RAISE 'journal entries are never changed or removed (% on %)', TG_OP, TG_TABLE_NAME USING ERRCODE = '23001';
END $$;
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE ON journal_entry FOR EACH ROW EXECUTE FUNCTION journal_refuse_change();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON journal_entry EXECUTE FUNCTION journal_refuse_change();

-- Erases one body. True if there was one to erase.
CREATE FUNCTION journal_erase_v1(the_run uuid, the_seq bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    erased boolean;
BEGIN
    PERFORM set_config('holdfast.erasing', the_run || ':' || the_seq, true);
    UPDATE journal_entry SET body = journal_tombstone(salt, body), salt = ''
        WHERE run_id = the_run AND seq = the_seq AND octet_length(salt) = 16;
    erased := FOUND;
    PERFORM set_config('holdfast.erasing', '', true);
    RETURN erased;
END $$;

-- Partitions: by run id, which begins with the time. The default one is there so that an append never fails; it stays empty.
CREATE TABLE journal_entry_default PARTITION OF journal_entry DEFAULT;
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON journal_entry_default EXECUTE FUNCTION journal_refuse_change();

CREATE FUNCTION journal_first_uuid(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(int8send((extract(epoch FROM at) * 1000)::bigint << 16) || '\x0000000000000000'::bytea, 'hex')::uuid $$;

-- One month's partition. LIKE + ATTACH takes SHARE UPDATE EXCLUSIVE on the parent, so appends go on; CREATE TABLE …
-- PARTITION OF would take ACCESS EXCLUSIVE and stop them all. Make months ahead: a default partition that holds rows of
-- the month makes ATTACH fail. ATTACH clones row triggers and indexes, not the TRUNCATE trigger.
CREATE FUNCTION journal_make_partition(month date) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    low  timestamptz := date_trunc('month', month::timestamp) AT TIME ZONE 'UTC';
    high timestamptz := (date_trunc('month', month::timestamp) + interval '1 month') AT TIME ZONE 'UTC';
    name text := 'journal_entry_' || to_char(month, 'YYYY_MM');
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('journal_make_partition'));  -- several sweeps may ask at once
    IF to_regclass(name) IS NOT NULL THEN RETURN name; END IF;
    EXECUTE format('CREATE TABLE %I (LIKE journal_entry INCLUDING ALL)', name);
    EXECUTE format('CREATE TRIGGER never_truncated BEFORE TRUNCATE ON %I EXECUTE FUNCTION journal_refuse_change()', name);
    EXECUTE format('ALTER TABLE journal_entry ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   name, journal_first_uuid(low), journal_first_uuid(high));
    RETURN name;
END $$;

-- The months that should have a partition and have none: last month to a year ahead.
CREATE FUNCTION journal_missing_partitions() RETURNS SETOF date LANGUAGE sql STABLE AS $$
    SELECT month::date FROM generate_series(-1, 12) AS n,
           LATERAL (SELECT date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') + n * interval '1 month') AS m (month)
    WHERE to_regclass('journal_entry_' || to_char(month, 'YYYY_MM')) IS NULL ORDER BY 1 $$;
SELECT journal_make_partition(month) FROM journal_missing_partitions() AS m (month);
