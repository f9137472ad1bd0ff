-- Generated code: inductor_output_code (Python wrapper), graph_dump (C++ of AOTInductor).
CREATE TABLE output_code_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  graph_id INTEGER REFERENCES graph(id),
  compile_id INTEGER REFERENCES compile(id),
  content_id INTEGER REFERENCES content_row(id),   -- the code without AOT id, cache paths, provenance handles, addresses; NULL: no payload
  path_id INTEGER REFERENCES text_row(id)          -- where PyTorch wrote it (file_path, else filename)
) STRICT;

CREATE VIEW output_code AS
  SELECT o.record_id, o.graph_id, o.compile_id, p.hash AS payload_hash, t.text AS path, o.content_id, r.payload_id
  FROM output_code_row o
  LEFT JOIN text_row t ON t.id = o.path_id LEFT JOIN record_row r ON r.id = o.record_id
  LEFT JOIN payload_row p ON p.id = r.payload_id;
