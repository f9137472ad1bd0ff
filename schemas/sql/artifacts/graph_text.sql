-- Texts of graphs: every printed FX graph, exported program and pass dump, by stage (the record key or artifact name).
CREATE TABLE graph_text_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  graph_id INTEGER REFERENCES graph(id),      -- NULL before the compile is split into graphs
  compile_id INTEGER REFERENCES compile(id),
  stage_id INTEGER NOT NULL REFERENCES text_row(id),
  content_id INTEGER REFERENCES content_row(id)   -- the normalised text; NULL: no payload
) STRICT;

CREATE VIEW graph_text AS
  SELECT t.graph_id, t.compile_id, s.text AS stage, t.record_id, p.hash AS payload_hash, t.content_id, r.payload_id
  FROM graph_text_row t
  LEFT JOIN text_row s ON s.id = t.stage_id
  LEFT JOIN record_row r ON r.id = t.record_id
  LEFT JOIN payload_row p ON p.id = r.payload_id;

-- Nodes of the pre-grad graphs (dynamo_output_graph, before_pre_grad_graph, inductor_pre_grad_graph) with their source line.
CREATE TABLE graph_node_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  ordinal INTEGER NOT NULL,     -- 0-based, in text order
  name TEXT NOT NULL,
  operation TEXT,               -- what the node calls, as printed
  file_id INTEGER REFERENCES text_row(id),
  line INTEGER,
  function_id INTEGER REFERENCES text_row(id),
  code_id INTEGER REFERENCES text_row(id),
  PRIMARY KEY (content_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE VIEW graph_node AS
  SELECT t.record_id, t.compile_id, t.graph_id, s.text AS stage, n.ordinal, n.name, n.operation, f.text AS file, n.line,
    u.text AS function, c.text AS code, n.content_id
  FROM graph_text_row t JOIN graph_node_row n ON n.content_id = t.content_id
  LEFT JOIN text_row s ON s.id = t.stage_id LEFT JOIN text_row f ON f.id = n.file_id LEFT JOIN text_row u ON u.id = n.function_id
  LEFT JOIN text_row c ON c.id = n.code_id;
