-- The latest run of a name, or of all.
-- query RunNamed(name TEXT?)
SELECT id FROM run WHERE :name IS NULL OR name = :name ORDER BY id DESC LIMIT 1;
