-- Time that each rank waited in each collective for the last rank: one row per collective, rank and group. Collectives of a group
-- are matched by their sequence number (and by how often the numbers started again: reset_count). `wait_us` is the time from when this rank
-- came to it (its kernel began, where the files of all ranks have that of their call; otherwise it was issued) to when the last rank did, under the names of the cost views too; with clocks of several hosts it is as exact as their agreement. A rank waits
-- no longer than its group's timeout, nor beyond the end of the collective, if the files have these: is_timed_out is 1 if the last rank
-- came after the timeout of this one, for which the collective had failed before. Later collectives of such a group are left out: ranks
-- whose call failed do not wait in them. Ranks whose files do not have the collective are not counted: rank_count is the number of
-- those that have it, member_count that of the group: as the dumps configure it or the collectives say (group_size), else the most that have one collective of it. Where
-- all came at once, last_rank is NULL; where a rank had ended what needs all ranks before the last one came (clocks of hosts that differ), wait_us is NULL as well. Where some are missing, one of them may have come last: last_rank is NULL, and wait_us is the time to the last of those that are not. is_open is 1
-- if by its dump no rank had ended the collective: its ranks wait on, and wait_us is NULL.
CREATE VIEW collective_wait AS
  WITH issued AS (
    SELECT coalesce(p.run_id, f.run_id) AS run_id, n.ordinal AS launch, c.process_id, c.rank, coalesce(c.process_id, -c.profile_id) AS who,
      c.id, c.group_size, c.group_name, c.sequence_number, c.op, c.start_ns, c.device_start_ns, c.graph_id, c.file, c.line, p.kind,
      e.timeout_ms, c.end_ns, e.id IS NOT NULL AND c.state IS NOT 'done' AS is_open
    FROM collective_run c LEFT JOIN recorder_entry_row e ON e.id = c.entry_id LEFT JOIN profile p ON p.id = c.profile_id LEFT JOIN process q ON q.id = c.process_id
    LEFT JOIN log_file f ON f.id = q.log_file_id LEFT JOIN launch n ON n.id = q.launch_id
    WHERE c.peer_id IS NULL AND c.is_p2p = 0 AND c.group_name IS NOT NULL AND c.sequence_number IS NOT NULL AND c.start_ns IS NOT NULL),
  begun AS (
    SELECT *, sequence_number <= 1 AND coalesce(lag(sequence_number) OVER (PARTITION BY run_id, who, group_name ORDER BY start_ns, id), 0) > 1
        AS is_reset
    FROM issued),
  counted AS (
    SELECT *, sum(is_reset) OVER (PARTITION BY run_id, who, group_name ORDER BY start_ns, id) AS reset_count FROM begun),
  one AS (
    SELECT run_id, launch, process_id, rank, who, group_name, reset_count, sequence_number, min(op) AS op, min(start_ns) AS start_ns,
      min(device_start_ns) AS device_start_ns,
      max(graph_id) AS graph_id, max(file) AS file, max(line) AS line, min(kind) AS kind,
      max(timeout_ms) AS timeout_ms, max(end_ns) AS end_ns, max(group_size) AS group_size, max(is_open) AS is_open
    FROM counted GROUP BY run_id, launch, who, group_name, reset_count, sequence_number),
  came AS (
    SELECT *, CASE WHEN min(device_start_ns IS NOT NULL) OVER same THEN device_start_ns ELSE start_ns END AS came_ns,
      count(*) OVER same AS rank_count, min(is_open) OVER same AS is_open_on_all
    FROM one
    WINDOW same AS (PARTITION BY run_id, launch, group_name, reset_count, sequence_number)),
  gap AS (
    SELECT *, max(came_ns) OVER same - came_ns AS gap_ns,
      coalesce(min(end_ns) OVER same < max(came_ns) OVER same AND (replace(lower(op), '_', '') LIKE '%allreduce%' OR replace(lower(op), '_', '') LIKE '%allgather%'
        OR replace(lower(op), '_', '') LIKE '%reducescatter%' OR replace(lower(op), '_', '') LIKE '%alltoall%' OR op LIKE '%barrier%'), 0) AS has_other_clocks,
      CASE WHEN max(came_ns) OVER same > min(came_ns) OVER same THEN first_value(rank) OVER (same ORDER BY came_ns DESC, rank) END AS last_rank
    FROM came
    WINDOW same AS (PARTITION BY run_id, launch, group_name, reset_count, sequence_number)),
  configured AS MATERIALIZED (
    SELECT run_id, key AS group_name, CASE WHEN min(ranks) = max(ranks) THEN length(min(ranks)) - length(replace(min(ranks), ',', '')) + 1 END
      AS members
    FROM (SELECT p.run_id, j.key, j.value ->> '$.ranks' AS ranks FROM profile p, json_each(p.metadata, '$.pg_config') j
      WHERE p.kind = 'flight_recorder' AND json_type(j.value) = 'object')
    WHERE ranks GLOB '*[0-9]*' GROUP BY run_id, key),
  sized AS (
    SELECT g.*, max(coalesce(m.members, 0), max(max(g.rank_count, coalesce(g.group_size, 0))) OVER (PARTITION BY g.run_id, g.launch, g.group_name))
      AS member_count
    FROM gap g LEFT JOIN configured m ON m.run_id = g.run_id AND m.group_name = g.group_name),
  broken AS (
    SELECT run_id, launch, group_name, reset_count, min(sequence_number) AS sequence_number FROM gap
    WHERE gap_ns > timeout_ms * 1000000 GROUP BY run_id, launch, group_name, reset_count),
  waited AS (
    SELECT *, CASE WHEN NOT is_open_on_all AND NOT has_other_clocks THEN min(gap_ns, coalesce(timeout_ms * 1000000, gap_ns), coalesce(max(end_ns - came_ns, 0), gap_ns)) / 1e3
      END AS wait_us FROM sized)
  SELECT run_id, launch, rank, process_id, group_name, reset_count, sequence_number, op, graph_id, file, line, start_ns / 1e3 AS start_us,
    wait_us, wait_us AS inclusive_us, wait_us AS share_us, 1 AS calls, kind,
    CASE WHEN rank_count >= member_count AND NOT has_other_clocks THEN last_rank END AS last_rank, rank_count,
    coalesce(gap_ns > timeout_ms * 1000000, 0) AS is_timed_out, timeout_ms * 1e3 AS timeout_us, member_count,
    is_open_on_all AS is_open
  FROM waited
  WHERE NOT EXISTS (SELECT 1 FROM broken b WHERE b.run_id IS waited.run_id AND b.launch IS waited.launch
    AND b.group_name = waited.group_name AND b.reset_count = waited.reset_count AND b.sequence_number < waited.sequence_number);
