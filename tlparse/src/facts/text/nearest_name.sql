-- The names of tables and views, or of their columns.
-- query QueryableName(is_column BOOLEAN)
SELECT DISTINCT CASE WHEN :is_column THEN c.name ELSE m.name END AS name /*TEXT*/
FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type IN ('table', 'view');

-- Those that have a column of this name, views first.
-- query OwnerOfColumn(name TEXT)
SELECT DISTINCT m.name /*TEXT*/
FROM sqlite_schema m, pragma_table_info(m.name) c
WHERE m.type IN ('table', 'view') AND c.name = :name
ORDER BY m.type = 'table', m.name;
