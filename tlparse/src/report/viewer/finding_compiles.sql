-- Of a launch, the compiles of these ids, or of these processes; without either, of these ranks (all if there are none). A title is the
-- label, and behind # which use of it: unique in its process. If compiles of the ids have one of the titles, only those.
-- query CompileOfFinding(run_id INTEGER, launch INTEGER?, ids INTEGER[], processes INTEGER[], ranks INTEGER[], titles TEXT[])
WITH
  candidate AS (
    SELECT c.id, p.rank, c.label || CASE WHEN c.generation > 0 THEN '#' || (c.generation + 1) ELSE '' END AS title
    FROM log_file f
      JOIN process p ON p.log_file_id = f.id
      JOIN compile c ON c.process_id = p.id
      LEFT JOIN launch n ON n.id = p.launch_id
    WHERE f.run_id = :run_id
      AND (:launch IS NULL OR coalesce(n.ordinal, 1) = :launch)
      AND CASE
        WHEN :ids <> '[]' THEN c.id IN (SELECT value FROM json_each(:ids))
        WHEN :processes <> '[]' THEN p.id IN (SELECT value FROM json_each(:processes))
        ELSE :ranks = '[]' OR p.rank IN (SELECT value FROM json_each(:ranks))
      END
  ),
  named AS (SELECT id, rank, title FROM candidate WHERE title IN (SELECT value FROM json_each(:titles)))
SELECT id /*INTEGER*/
FROM (
  SELECT id, rank, title FROM named
  UNION ALL
  SELECT id, rank, title FROM candidate WHERE :ids <> '[]' AND NOT EXISTS (SELECT 1 FROM named))
ORDER BY :ranks <> '[]' AND rank NOT IN (SELECT value FROM json_each(:ranks)), rank, id
LIMIT 200;
