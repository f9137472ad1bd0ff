-- Why a frame was compiled again: artifact recompile_reasons, one row per reason (one per earlier compile that was tried).
CREATE TABLE recompile_row (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,             -- 0-based; 0 is the most recent earlier compile
  compile_id INTEGER REFERENCES compile(id),
  prior_compile_id INTEGER REFERENCES compile(id),  -- the compile whose guard failed; NULL: not in this log
  prior_label_id INTEGER REFERENCES text_row(id),
  reason_id INTEGER NOT NULL REFERENCES text_row(id),   -- whole reason, as logged
  guard_id INTEGER REFERENCES text_row(id),             -- the failed check
  user_file_id INTEGER REFERENCES text_row(id),         -- where the guard came from; may be cut on the left by PyTorch
  user_line INTEGER,
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE VIEW recompile AS
  SELECT m.record_id, m.ordinal, m.compile_id, m.prior_compile_id, p.text AS prior_label, r.text AS reason, g.text AS guard,
    f.text AS user_file, m.user_line
  FROM recompile_row m
  LEFT JOIN text_row p ON p.id = m.prior_label_id LEFT JOIN text_row r ON r.id = m.reason_id LEFT JOIN text_row g ON g.id = m.guard_id
  LEFT JOIN text_row f ON f.id = m.user_file_id;
