-- Result of a lookup. guard_miss: there was an entry, but its guards failed;
-- remote_error: a remote store that may have had it gave no usable answer (libtrace).
CREATE TABLE cache_state (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  is_hit INTEGER,    -- an entry was used
  is_miss INTEGER,   -- the cache was asked and had nothing usable: with is_hit, what a hit rate counts
  is_bypass INTEGER  -- the cache was not asked
) STRICT;
INSERT INTO cache_state VALUES (0, 'hit', 1, 0, 0), (1, 'miss', 0, 1, 0), (2, 'guard_miss', 0, 1, 0),
  (3, 'bypass', 0, 0, 1), (4, 'disabled', 0, 0, 1), (5, 'remote_error', 0, 1, 0);

-- Whether the components of a key are known. unparsed: they could not be read, or the payload does
-- not have the hash that its record claims.
CREATE TABLE components_state (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
INSERT INTO components_state VALUES (0, 'full'), (1, 'empty'), (2, 'unparsed');

-- Cache lookups and the components of their keys. One row per lookup: from the artifact where there is one, else from the
-- instant event of the same lookup, never both.
CREATE TABLE cache_event_row (
  id INTEGER PRIMARY KEY,
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  graph_id INTEGER REFERENCES graph(id),
  layer_id INTEGER NOT NULL REFERENCES text_row(id),
  state INTEGER NOT NULL REFERENCES cache_state(id),
  key_id INTEGER REFERENCES cache_key_row(id),
  components_state INTEGER NOT NULL REFERENCES components_state(id),
  component_set_id INTEGER REFERENCES component_set_row(id),
  parent_event_id INTEGER REFERENCES cache_event_row(id),
  event_time_ns INTEGER,               -- since the epoch (cache_event_time)
  time_saved_ns INTEGER,
  time_taken_ns INTEGER,
  detail_id INTEGER REFERENCES text_row(id),           -- cache_status_detailed: hit, full_miss, guard_miss, remote_error
  guard_expression_id INTEGER REFERENCES text_row(id), -- the guard that failed, on a guard miss
  bypass_reason_id INTEGER REFERENCES text_row(id),
  remote_error_id INTEGER REFERENCES text_row(id),     -- libtrace: error of a remote store that gave no usable answer
  waited_ns INTEGER,                                   -- libtrace: time waited for another compile of the key
  wait_given_up_id INTEGER REFERENCES text_row(id)     -- libtrace: why it was compiled nevertheless: max_wait, nested
) STRICT;

CREATE VIEW cache_event AS
  SELECT e.id, e.record_id, e.compile_id, e.graph_id, p.rank, l.text AS layer,
    (SELECT name FROM cache_state WHERE id = e.state) AS state,
    k.key,
    g.direction,
    (SELECT name FROM components_state WHERE id = e.components_state) AS components_state,
    e.parent_event_id, e.time_saved_ns, e.time_taken_ns, b.text AS bypass_reason, d.text AS status_detailed,
    ge.text AS guard_expression, e.event_time_ns, e.component_set_id, r.process_id, s.device_index, re.text AS remote_error,
    e.waited_ns, wg.text AS wait_given_up
  FROM cache_event_row e
  JOIN record_row r ON r.id = e.record_id
  JOIN process p ON p.id = r.process_id AND e.record_id BETWEEN p.first_record_id AND p.last_record_id
  LEFT JOIN graph g ON g.id = e.graph_id
  LEFT JOIN text_row l ON l.id = e.layer_id LEFT JOIN cache_key_row k ON k.id = e.key_id LEFT JOIN text_row b ON b.id = e.bypass_reason_id
  LEFT JOIN text_row d ON d.id = e.detail_id LEFT JOIN text_row ge ON ge.id = e.guard_expression_id
  LEFT JOIN text_row re ON re.id = e.remote_error_id LEFT JOIN text_row wg ON wg.id = e.wait_given_up_id
  LEFT JOIN cache_key_set_row s ON s.key_id = e.key_id AND s.component_set_id = e.component_set_id;

-- One distinct component: name and hash. `value` is the text of the first one seen: a key is made of hashes, texts may hold
-- addresses. One that names a device is stored once for all device indexes: `hash` is NULL, U+FFFC (char(65532)) replaces the index
-- in `value`, and component_hash_row has the hash for each index.
CREATE TABLE component_row (
  id INTEGER PRIMARY KEY,
  name_id INTEGER NOT NULL REFERENCES text_row(id),
  hash TEXT,                -- 51 base32 characters; of the text itself if the log has none
  value TEXT NOT NULL
) STRICT;
CREATE TABLE component_hash_row (
  component_id INTEGER NOT NULL REFERENCES component_row(id),
  device_index INTEGER NOT NULL,  -- that the key names
  hash TEXT NOT NULL,       -- of the component with that index
  PRIMARY KEY (component_id, device_index)
) STRICT, WITHOUT ROWID;

-- A component set is a sequence of runs; each run is a stretch of a stored list. A set that differs from earlier ones in few
-- components costs a row per run and the few components; keys that differ by the device index only are of one set.
CREATE TABLE component_set_row (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL,       -- XXH3-128 over names and hashes of the first key that was made of it, hex
  length INTEGER NOT NULL   -- number of components
) STRICT;
CREATE TABLE component_list_row (
  list_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  component_id INTEGER NOT NULL REFERENCES component_row(id),
  PRIMARY KEY (list_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE component_run_row (
  set_id INTEGER NOT NULL REFERENCES component_set_row(id),
  ordinal INTEGER NOT NULL,       -- of the run's first component in the set
  length INTEGER NOT NULL,        -- number of components of the run
  list_id INTEGER NOT NULL,
  list_ordinal INTEGER NOT NULL,  -- of the run's first component in the list
  PRIMARY KEY (set_id, ordinal)
) STRICT, WITHOUT ROWID;
-- Keys of lookups. On GPUs every rank has its own, so they are not in `text_row`.
CREATE TABLE cache_key_row (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL         -- as in the log
) STRICT;

-- The component set of each key.
CREATE TABLE cache_key_set_row (
  key_id INTEGER NOT NULL REFERENCES cache_key_row(id),
  component_set_id INTEGER NOT NULL REFERENCES component_set_row(id),
  device_index INTEGER,     -- that its components name; NULL: none does (or they name several, and were stored unchanged)
  PRIMARY KEY (key_id, component_set_id)
) STRICT, WITHOUT ROWID;

-- The components of a set, in order. `hash` is NULL and U+FFFC is in `value` where they depend on the device index: cache_component
-- has those of each key.
CREATE VIEW component_set_member AS
  SELECT r.set_id AS component_set_id, r.ordinal + l.ordinal - r.list_ordinal AS ordinal, n.text AS name, c.hash, c.value,
    l.component_id
  FROM component_run_row r
  JOIN component_list_row l ON l.list_id = r.list_id AND l.ordinal >= r.list_ordinal AND l.ordinal < r.list_ordinal + r.length
  JOIN component_row c ON c.id = l.component_id
  JOIN text_row n ON n.id = c.name_id;

-- One component of one cache key. Compare hashes, never values.
CREATE VIEW cache_component AS
  SELECT t.key, m.ordinal, m.name, coalesce(m.hash, h.hash) AS hash,
    CASE WHEN m.hash IS NULL THEN replace(m.value, char(65532), k.device_index) ELSE m.value END AS value,
    k.component_set_id, k.device_index
  FROM cache_key_set_row k JOIN cache_key_row t ON t.id = k.key_id JOIN component_set_member m ON m.component_set_id = k.component_set_id
  LEFT JOIN component_hash_row h ON m.hash IS NULL AND h.component_id = m.component_id AND h.device_index = k.device_index;
