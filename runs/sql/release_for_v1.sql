-- The release that a new run of the agent is pinned to: the canary for its share of them, else the current one; NULL where
-- no release of the agent takes new runs. What is started under the same `sticky` text falls to the same side, and stays
-- with the canary as its share grows; NULL: by chance.
CREATE FUNCTION runs_release_for_v1(the_agent text, sticky text) RETURNS varchar LANGUAGE sql VOLATILE AS $fn$
    SELECT r.id FROM runs_release r
     WHERE r.agent = the_agent
       AND (r.stage = 'current' OR r.stage = 'canary' AND r.share > (
            CASE WHEN sticky IS NULL THEN random() * 100
                 ELSE ('x' || encode(substr(sha256(convert_to(the_agent || ' ' || sticky, 'UTF8')), 1, 4), 'hex'))::bit(32)::bigint
                      % 10000 / 100.0 END))
     ORDER BY r.stage = 'canary' DESC LIMIT 1
$fn$;
