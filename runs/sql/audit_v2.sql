-- One record of the audit list, by the clock of its transaction. The role is the one that the actor has now: a record
-- stays true when roles change. `only_if` false or NULL: nothing was done, and nothing is recorded.
CREATE FUNCTION runs_audit_v2(
    only_if boolean, the_actor text, the_act text, the_door text, the_address text, the_run uuid, the_agent text,
    the_subject text, the_reason text, the_detail jsonb
) RETURNS void LANGUAGE sql AS $fn$
    INSERT INTO runs_auditrecord (actor, role, act, door, address, run, agent, subject, reason, detail)
    SELECT the_actor,
           coalesce((SELECT string_agg(g.name, ' ' ORDER BY g.name)
                       FROM auth_user u JOIN auth_user_groups m ON m.user_id = u.id JOIN auth_group g ON g.id = m.group_id
                      WHERE u.username = the_actor), ''),
           the_act, the_door, the_address, the_run, the_agent, the_subject, the_reason, the_detail
     WHERE only_if
$fn$;
