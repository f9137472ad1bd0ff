-- Every slice of a profile: the rows of the timeline are made of kind, thread, device and stream.
-- kind: 0 annotations, 1 compiled code, 2 ops, 3 kernels, 4 copies. `which` may end with ORDER BY
-- and LIMIT.
-- query SliceOfProfile(profile_id INTEGER, which SQL)
WITH slice(kind, thread_id, device, stream, start_ns, duration_ns, name_id, graph_id, call) AS (
  SELECT 0, thread_id, device, stream, start_ns, duration_ns, name_id, NULL, NULL
  FROM annotation_row WHERE profile_id = :profile_id
  UNION ALL SELECT 1, s.thread_id, s.device, s.stream, s.start_ns, s.duration_ns, s.name_id,
    l.graph_id, s.kind
  FROM compiled_slice_row s LEFT JOIN compiled_slice_link_row l ON l.slice_id = s.id
  WHERE s.profile_id = :profile_id
  UNION ALL SELECT 2, thread_id, NULL, NULL, start_ns, duration_ns, name_id, NULL, NULL
  FROM op_run_row WHERE profile_id = :profile_id
  UNION ALL SELECT 3, k.thread_id, k.device, k.stream, k.start_ns, k.duration_ns, k.name_id,
    s.graph_id, NULL
  FROM kernel_run_row k LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = k.id
    LEFT JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id
  WHERE k.profile_id = :profile_id
  UNION ALL SELECT 4, NULL, device, stream, start_ns, duration_ns, name_id, NULL, NULL
  FROM device_copy_row WHERE profile_id = :profile_id)
SELECT kind /*INTEGER*/, thread_id /*INTEGER?*/, device /*INTEGER?*/, stream /*INTEGER?*/,
  start_ns /*INTEGER*/, duration_ns /*INTEGER*/, name_id /*INTEGER?*/, graph_id /*INTEGER?*/,
  call /*INTEGER?*/
FROM slice WHERE {which};

-- query NameOfSlice(id INTEGER)
SELECT text FROM text_row WHERE id = :id;

-- query ThreadOfSlice(id INTEGER)
SELECT tid, name /*TEXT?*/ FROM profile_thread WHERE id = :id;

-- Profiles that the timeline shows.
-- query TimelineProfiles(run_id INTEGER)
SELECT count(*) AS count /*INTEGER*/ FROM profile p JOIN profile_kind k ON k.name = p.kind
WHERE p.run_id = :run_id AND k.has_times;
