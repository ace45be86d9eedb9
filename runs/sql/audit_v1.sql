-- The audit list is written once: not even an administrator of the console can change what stands in it.
CREATE FUNCTION runs_refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'audit records are never changed or removed (%)', TG_OP USING ERRCODE = '23001';
END $$;
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE ON runs_auditrecord
    FOR EACH ROW EXECUTE FUNCTION runs_refuse_audit_change();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON runs_auditrecord EXECUTE FUNCTION runs_refuse_audit_change();
