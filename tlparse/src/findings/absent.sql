-- The latest other launch in which all of these ranks have logs.
-- query OtherLaunchWith(run_id INTEGER, launch INTEGER, ranks INTEGER[])
SELECT n.ordinal FROM process p JOIN launch n ON n.id = p.launch_id
WHERE n.run_id = :run_id AND n.ordinal <> :launch
  AND p.rank IN (SELECT value FROM json_each(:ranks))
GROUP BY n.ordinal HAVING count(DISTINCT p.rank) = json_array_length(:ranks)
ORDER BY n.ordinal DESC LIMIT 1;

-- query RankWithDump(run_id INTEGER)
SELECT DISTINCT rank FROM profile WHERE run_id = :run_id AND kind = 'flight_recorder';

-- Whether graphs of a launch hold collectives of the default group, which has all ranks.
-- query LaunchWithWorldCollectives(run_id INTEGER, launch INTEGER)
SELECT EXISTS (SELECT 1 FROM collective_row c JOIN collective_use_row u ON u.content_id = c.content_id
    JOIN compile k ON k.id = u.compile_id JOIN process p ON p.id = k.process_id
    JOIN launch n ON n.id = p.launch_id
  WHERE n.run_id = :run_id AND n.ordinal = :launch AND c.group_name IN ('0', 'default_pg'))
  AS has_collectives /*BOOLEAN*/;

-- Whether the run was made of one log that was named itself: its folder was not looked through.
-- query LogGivenAlone(run_id INTEGER)
SELECT count(*) = 1 AND max(f.path = n.name) AS is_alone /*BOOLEAN*/
FROM run n JOIN log_file f ON f.run_id = n.id WHERE n.id = :run_id;
