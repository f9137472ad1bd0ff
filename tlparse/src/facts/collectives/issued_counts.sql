-- What dumps count of a group's calls (pg_status), where none of them has entries. A group's number in
-- pg_status is local: 0 is c10d's group of all ranks, the others are in the order of their names where
-- each has one that is a number.
-- query CountedCalls(run_id INTEGER)
WITH counted AS (SELECT p.id AS profile_id, p.rank, CAST(j.key AS INTEGER) AS local,
    CAST(j.value ->> '$.last_enqueued_collective' AS INTEGER) AS enqueued,
    CAST(j.value ->> '$.last_completed_collective' AS INTEGER) AS completed,
    count(*) OVER (PARTITION BY p.id) AS group_count
  FROM profile p, json_each(p.metadata, '$.pg_status') j
  WHERE p.run_id = :run_id AND p.kind = 'flight_recorder' AND p.rank IS NOT NULL
    AND json_type(j.value) = 'object'),
named AS (SELECT p.id AS profile_id, j.key AS name, j.value ->> '$.desc' AS description,
    row_number() OVER (PARTITION BY p.id ORDER BY CAST(j.key AS INTEGER)) - 1 AS local,
    count(*) OVER (PARTITION BY p.id) AS group_count,
    sum(j.key GLOB '*[^0-9]*') OVER (PARTITION BY p.id) AS other_names
  FROM profile p, json_each(p.metadata, '$.pg_config') j
  WHERE p.run_id = :run_id AND p.kind = 'flight_recorder' AND json_type(j.value) = 'object')
SELECT coalesce(n.name, '0') AS name /*TEXT*/,
  coalesce(n.description, 'default_pg') AS description /*TEXT*/, c.rank /*INTEGER*/,
  max(c.enqueued) AS enqueued /*INTEGER*/, max(c.completed) AS completed /*INTEGER*/
FROM counted c LEFT JOIN named n ON n.profile_id = c.profile_id AND n.local = c.local
  AND n.group_count = c.group_count AND n.other_names = 0
WHERE (c.local = 0 OR n.name IS NOT NULL) AND c.enqueued IS NOT NULL AND c.completed IS NOT NULL
GROUP BY 1, c.rank ORDER BY 1, c.rank;
