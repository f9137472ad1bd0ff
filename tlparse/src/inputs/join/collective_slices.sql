-- The collectives of a process that stand for themselves, by time.
-- query JoinableCollective(process_id INTEGER, source INTEGER)
SELECT c.id, o.text AS op, c.group_id, c.sequence_number, c.start_ns /*INTEGER*/,
  CASE WHEN c.device IS NULL THEN coalesce(c.end_ns,
  c.start_ns) ELSE c.start_ns END AS end_ns /*INTEGER*/
FROM collective_run_row c JOIN profile p ON p.id = c.profile_id
  LEFT JOIN text_row o ON o.id = c.op_id LEFT JOIN collective_run_link_row
  l ON l.collective_run_id = c.id
WHERE p.process_id = :process_id AND CASE WHEN c.entry_id IS NOT NULL THEN 0 WHEN
  p.kind = 'libtrace' THEN 2 ELSE 1 END = :source AND c.is_p2p = 0 AND c.start_ns IS NOT NULL
  AND l.peer_id IS NULL
ORDER BY c.start_ns, c.id;

-- query ProcessWithProfile(run_id INTEGER)
SELECT DISTINCT process_id /*INTEGER*/
FROM profile WHERE run_id = :run_id AND process_id IS NOT NULL;
