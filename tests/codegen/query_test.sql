-- Profiles of a run and their ranks.
-- query TestProfile(run_id INTEGER, kind TEXT?, only SQL)
SELECT p.id, p.path, p.rank, p.start_us, p.event_count * 2 AS twice /*INTEGER*/,
  p.rank AS rank_or_zero /*INTEGER*/, p.host AS host /*TEXT?*/, p.rank IS NULL AS is_unranked /*BOOLEAN*/
FROM profile p WHERE p.run_id = :run_id AND (:kind IS NULL OR p.kind = :kind) AND {only}
ORDER BY p.id;

-- query TestSlices(ids INTEGER[], kinds TEXT[])
SELECT s.id, s.kind, s.start_ns / 1e3 AS start_us /*REAL*/
FROM compiled_slice_row s
WHERE s.profile_id IN (SELECT value FROM json_each(:ids))
  AND s.kind IN (SELECT k.id FROM compiled_slice_kind k JOIN json_each(:kinds) j ON j.value = k.name)
ORDER BY s.id;

-- query TestJoined
SELECT p.id, s.kind, s.start_ns, n.count AS slices /*INTEGER*/
FROM profile p LEFT JOIN compiled_slice_row s ON s.profile_id = p.id
  LEFT JOIN (SELECT profile_id, count(*) AS count FROM compiled_slice_row GROUP BY 1) n ON n.profile_id = p.id
ORDER BY p.id, s.id;

-- A view without an outer join, and one that joins launch so.
-- query TestOfViews
SELECT i.id AS problem, s.launch FROM import_log i JOIN rank_status s ON s.run_id = i.run_id;

-- query TestRename(id INTEGER, path TEXT)
UPDATE profile SET path = :path WHERE id = :id;

-- An error in the third row.
-- query TestFails
SELECT value AS number /*INTEGER*/, abs(CASE value WHEN 3 THEN -9223372036854775808 ELSE value END) AS magnitude /*INTEGER*/
FROM json_each('[1, 2, 3, 4]');
