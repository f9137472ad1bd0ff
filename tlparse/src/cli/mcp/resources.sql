-- The tables and views with their descriptions.
-- query DescribedTable()
SELECT m.name /*TEXT*/, coalesce(d.text, '') AS text /*TEXT*/
FROM sqlite_schema m LEFT JOIN schema_doc d ON d.name = m.name AND d.column = ''
WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE '%\_row' ESCAPE '\'
ORDER BY m.name;

-- The columns of one of them.
-- query DescribedColumn(name TEXT)
SELECT c.name /*TEXT*/, c.type /*TEXT*/, coalesce(d.text, '') AS text /*TEXT*/
FROM pragma_table_info(:name) c LEFT JOIN schema_doc d ON d.name = :name AND d.column = c.name
ORDER BY c.cid;
