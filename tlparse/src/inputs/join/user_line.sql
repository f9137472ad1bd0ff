-- Files of the stacks in logs and snapshots that end so.
-- query FileOfStacks(suffix TEXT)
SELECT DISTINCT file /*TEXT*/ FROM stack_frame
WHERE substr(file, -length(:suffix)) = :suffix LIMIT 2;
