-- query TableOfProfiles
SELECT m.name /*TEXT*/ FROM sqlite_schema m JOIN pragma_table_info(m.name) c
WHERE m.type = 'table' AND c.name = 'profile_id';

-- Inputs of a run of the same path, parts of it, or the same content, those of the same content
-- first.
-- query EarlierInput(run_id INTEGER, path TEXT, parts TEXT, content_hash TEXT)
SELECT id, content_hash = :content_hash AS is_same /*BOOLEAN*/ FROM profile
WHERE run_id = :run_id AND (path = :path OR substr(path, 1, length(:parts)) = :parts
  OR content_hash = :content_hash)
ORDER BY 2 DESC;
