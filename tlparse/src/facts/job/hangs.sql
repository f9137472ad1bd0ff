-- The file may hold anything: members are looked for by path, which no other value makes an error.
-- query HangOfRun(run_id INTEGER)
SELECT c.profile_id, h.key AS ordinal /*INTEGER*/, json_extract(c.hangs, h.fullkey || '.time_us') AS time_us /*INTEGER*/,
  json_extract(c.hangs, h.fullkey || '.why') AS why /*TEXT*/, coalesce(json_extract(c.hangs, h.fullkey || '.was_ended'), 0) AS was_ended /*BOOLEAN*/,
  coalesce(json_extract(c.hangs, h.fullkey || '.busy'), '') AS busy /*TEXT*/,
  coalesce(c.exit_code >= 128, 0) OR EXISTS (SELECT 1 FROM uncaught_exception e WHERE e.profile_id = c.profile_id AND e.ordinal = 0
    AND e.thread IS NULL AND e.type IN ('KeyboardInterrupt', 'SignalException')) OR (SELECT count(*) > 0 AND count(*) = count(p.signal) FROM run_process p
    WHERE p.profile_id = c.profile_id AND p.rank IS NOT NULL AND p.ended_us > json_extract(c.hangs, h.fullkey || '.time_us')) AS was_signalled /*BOOLEAN*/,
  (SELECT min(p.started_us) FROM run_process p WHERE p.profile_id = c.profile_id AND p.rank IS NOT NULL
    AND json_extract(c.hangs, h.fullkey || '.time_us') BETWEEN p.started_us AND coalesce(p.ended_us, c.ended_us)
    AND EXISTS (SELECT 1 FROM run_process o WHERE o.profile_id = p.profile_id AND o.rank = p.rank
      AND o.ended_us < p.started_us)) AS again_us /*INTEGER?*/
FROM run_command c JOIN profile f ON f.id = c.profile_id, json_each(c.hangs) h
WHERE f.run_id = :run_id AND c.hangs IS NOT NULL AND json_extract(c.hangs, h.fullkey || '.why') IS NOT NULL ORDER BY c.profile_id, h.key;

-- What was taken: of each process a sentence that says where it was.
-- query TakenOfHang(profile_id INTEGER, ordinal INTEGER)
SELECT t.value AS text /*TEXT*/ FROM run_command c, json_each(c.hangs, '$[' || :ordinal || '].taken') t
WHERE c.profile_id = :profile_id ORDER BY t.key;

-- The rank whose process started that one.
-- query RankOfParent(profile_id INTEGER, pid INTEGER)
SELECT p.rank /*INTEGER*/ FROM run_process c JOIN run_process p ON p.profile_id = c.profile_id AND p.pid = c.parent_pid
WHERE c.profile_id = :profile_id AND c.pid = :pid AND c.rank IS NULL AND p.rank IS NOT NULL
ORDER BY c.started_us DESC, p.started_us DESC LIMIT 1;
