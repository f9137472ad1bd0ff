-- Where ranks of one run differ, as rows for further queries. The answers of `tlparse cache|collectives|execution|ranks` name causes as well;
-- these views pair ranks by compile label only. Processes whose logs are damaged (log_damage) are left out.

-- Cache lookups that differ between ranks: one row per lookup, state and component set (a lookup without components: and key).
-- Keys of one set differ by the device index only; `key` is the first of them.
CREATE VIEW cache_divergence AS
  WITH lookup AS (
    SELECT f.run_id, c.label, c.generation, c.function, l.text AS layer, g.direction,
      row_number() OVER (PARTITION BY e.compile_id, e.layer_id, g.direction ORDER BY e.record_id) - 1 AS ordinal,
      e.state, e.key_id, e.component_set_id, CASE WHEN e.component_set_id IS NULL THEN e.key_id END AS bare_key_id, p.rank, p.id AS process_id,
      coalesce(p.launch_id, 0) AS launch_id
    FROM cache_event_row e
    JOIN compile c ON c.id = e.compile_id JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
    LEFT JOIN graph g ON g.id = e.graph_id LEFT JOIN text_row l ON l.id = e.layer_id
    WHERE p.id NOT IN (SELECT process_id FROM log_damage WHERE is_damaged)),
  class AS (
    SELECT run_id, launch_id, label, generation, min(function) AS function, layer, direction, ordinal, state, min(key_id) AS key_id,
      component_set_id, count(*) AS rank_count, min(rank) AS first_rank, group_concat(rank) AS ranks
    FROM lookup GROUP BY run_id, launch_id, label, generation, layer, direction, ordinal, state, component_set_id, bare_key_id)
  SELECT x.run_id, x.label, x.generation, x.function, x.layer, x.direction, x.ordinal,
    (SELECT name FROM cache_state WHERE id = x.state) AS state,
    t.key, x.component_set_id, x.rank_count, x.first_rank, x.ranks, n.ordinal AS launch
  FROM (SELECT *, count(*) OVER (PARTITION BY run_id, launch_id, label, generation, layer, direction, ordinal) AS classes FROM class) x
  LEFT JOIN cache_key_row t ON t.id = x.key_id LEFT JOIN launch n ON n.id = x.launch_id
  WHERE x.classes > 1;

-- Graphs whose collectives are not the same on all ranks: one row per graph, source and content. Empty if the ranks issue the same
-- collectives in the same order, in any graphs. What a recompile issues like an earlier compile of its frame, whatever the sizes,
-- is not counted again.
CREATE VIEW collective_divergence AS
  WITH used AS (
    SELECT f.run_id, coalesce(p.launch_id, 0) AS launch_id, p.id AS process_id, u.record_id, c.label, c.generation, g.direction,
      rtrim(c.label, '0123456789') AS frame,
      row_number() OVER (PARTITION BY u.compile_id, u.source, g.direction ORDER BY u.record_id) - 1 AS ordinal,
      u.source, u.content_id, p.rank
    FROM collective_use_row u
    JOIN compile c ON c.id = u.compile_id JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
    LEFT JOIN graph g ON g.id = u.graph_id
    WHERE p.id NOT IN (SELECT process_id FROM log_damage)),
  items AS (
    SELECT content_id, group_concat(coalesce(op, '') || ' ' || coalesce(shape, '') || ' ' || coalesce(dtype, '') || ' ' ||
      coalesce(arguments, '') || ' ' || coalesce(group_name, ''), char(10)) AS text,
      group_concat(coalesce(op, '') || ' ' || coalesce(group_name, ''), char(10)) AS ops
    FROM (SELECT * FROM collective_row ORDER BY content_id, ordinal) GROUP BY content_id),
  sequence AS (
    SELECT launch_id, run_id, source, group_concat(text, char(10)) AS text
    FROM (SELECT u.*, i.text, row_number() OVER (PARTITION BY u.process_id, u.source, u.generation, u.frame, u.direction,
        u.ordinal, i.ops ORDER BY u.record_id) AS nth
      FROM used u JOIN items i ON i.content_id = u.content_id ORDER BY u.process_id, u.source, u.record_id)
    WHERE nth = 1 GROUP BY run_id, launch_id, source, process_id),
  unequal AS (SELECT run_id, launch_id, source FROM sequence GROUP BY run_id, launch_id, source HAVING min(text) <> max(text)),
  class AS (
    SELECT run_id, launch_id, label, generation, direction, ordinal, source, content_id, count(*) AS rank_count, min(rank) AS first_rank,
      group_concat(rank) AS ranks
    FROM used GROUP BY run_id, launch_id, label, generation, direction, ordinal, source, content_id)
  SELECT x.run_id, x.label, x.generation, x.direction, x.ordinal, (SELECT name FROM collective_source WHERE id = x.source) AS source,
    x.content_id, (SELECT count(*) FROM collective_row r WHERE r.content_id = x.content_id AND r.is_wait = 0) AS collectives,
    x.rank_count, x.first_rank, x.ranks, n.ordinal AS launch
  FROM (SELECT *, count(*) OVER (PARTITION BY run_id, launch_id, label, generation, direction, ordinal, source) AS classes FROM class) x
  JOIN unequal q ON q.run_id = x.run_id AND q.launch_id = x.launch_id AND q.source = x.source
  LEFT JOIN launch n ON n.id = x.launch_id
  WHERE x.classes > 1;

-- Orders of execution, if they differ between ranks: one row per order. `process_id` is the first process that has this order:
-- its rows of graph_execution are the order.
CREATE VIEW execution_divergence AS
  WITH per_process AS (
    SELECT run_id, launch_id, process_id, rank, group_concat(content_id) AS contents, sum(length) AS executions
    FROM (SELECT f.run_id, coalesce(p.launch_id, 0) AS launch_id, u.process_id, p.rank, u.content_id,
            (SELECT count(*) FROM graph_execution_row r WHERE r.content_id = u.content_id) AS length
          FROM graph_execution_use_row u JOIN process p ON p.id = u.process_id JOIN log_file f ON f.id = p.log_file_id
          WHERE p.id NOT IN (SELECT process_id FROM log_damage)
          ORDER BY u.process_id, u.first_ordinal)
    GROUP BY run_id, launch_id, process_id, rank),
  class AS (
    SELECT run_id, launch_id, contents, min(process_id) AS process_id, max(executions) AS executions, count(*) AS rank_count, min(rank) AS first_rank, group_concat(rank) AS ranks
    FROM per_process GROUP BY run_id, launch_id, contents)
  SELECT x.run_id, x.process_id, x.executions, x.rank_count, x.first_rank, x.ranks, n.ordinal AS launch
  FROM (SELECT *, count(*) OVER (PARTITION BY run_id, launch_id) AS classes FROM class) x
  LEFT JOIN launch n ON n.id = x.launch_id
  WHERE x.classes > 1;

-- One row per process: a summary of its compiles. compile_us is the time of all compiles and their backwards: NULL if the log lacks that of one;
-- known_compile_us adds up what it has.
CREATE VIEW rank_summary AS
  WITH compiles AS (
      SELECT process_id, count(*) AS compiles, sum(status = 'failed') AS failed, sum(status = 'unfinished') AS unfinished,
        sum(duration_us + coalesce(backward_duration_us, 0)) AS known_us,
        sum(duration_us IS NULL AND frame_id IS NOT NULL AND is_synthetic = 0) AS without_time FROM compile GROUP BY process_id),
    breaks AS (SELECT c.process_id, count(*) AS n FROM graph_break_row b JOIN compile c ON c.id = b.compile_id GROUP BY 1),
    recompiles AS (SELECT c.process_id, count(DISTINCT r.compile_id) AS n FROM recompile_row r JOIN compile c ON c.id = r.compile_id GROUP BY 1),
    lookups AS (
      SELECT c.process_id, sum(s.is_hit) AS hits, sum(s.is_miss) AS misses, sum(s.is_bypass) AS bypasses
      FROM cache_event_row e JOIN compile c ON c.id = e.compile_id JOIN cache_state s ON s.id = e.state GROUP BY 1)
  SELECT f.run_id, p.id AS process_id, p.rank, f.path, p.torch_version, coalesce(c.compiles, 0) AS compiles,
    coalesce(c.failed, 0) AS failed_compiles, coalesce(c.unfinished, 0) AS unfinished_compiles,
    CASE WHEN coalesce(c.without_time, 0) = 0 THEN coalesce(c.known_us, 0) END AS compile_us,
    coalesce(b.n, 0) AS graph_breaks, coalesce(r.n, 0) AS recompiles, coalesce(l.hits, 0) AS cache_hits,
    coalesce(l.misses, 0) AS cache_misses, coalesce(l.bypasses, 0) AS cache_bypasses, coalesce(c.known_us, 0) AS known_compile_us
  FROM process p JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN compiles c ON c.process_id = p.id LEFT JOIN breaks b ON b.process_id = p.id
  LEFT JOIN recompiles r ON r.process_id = p.id LEFT JOIN lookups l ON l.process_id = p.id;
