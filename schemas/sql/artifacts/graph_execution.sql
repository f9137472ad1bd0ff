-- Order in which compiled graphs ran: artifacts graph_execution (whole order at once) and inductor_graph_execution (2025: one graph each).
CREATE TABLE graph_execution_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  ordinal INTEGER NOT NULL,
  label TEXT,               -- compile id as logged; NULL: loaded from the cache
  PRIMARY KEY (content_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE graph_execution_use_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  process_id INTEGER NOT NULL REFERENCES process(id),
  first_ordinal INTEGER NOT NULL,   -- executions of the process in earlier records
  content_id INTEGER NOT NULL REFERENCES content_row(id)
) STRICT;

-- `compile_id` is the latest compile of that label; NULL: no label, or none of that label in the log.
CREATE VIEW graph_execution AS
  SELECT u.record_id, p.rank, u.first_ordinal + e.ordinal AS ordinal,
    (SELECT max(c.id) FROM compile c WHERE c.process_id = u.process_id AND c.label = e.label) AS compile_id, e.label,
    u.process_id, u.content_id
  FROM graph_execution_use_row u JOIN graph_execution_row e ON e.content_id = u.content_id
  JOIN record_row r ON r.id = u.record_id JOIN process p ON p.id = r.process_id AND u.record_id BETWEEN p.first_record_id AND p.last_record_id;
