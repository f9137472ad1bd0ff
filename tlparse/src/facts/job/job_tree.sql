-- query RoleOfLaunch(run_id INTEGER, launch INTEGER)
SELECT r.id, r.name, r.evidence, r.is_sure /*BOOLEAN*/
FROM role r JOIN launch n ON n.id = r.launch_id
WHERE r.run_id = :run_id AND n.ordinal = :launch ORDER BY r.ordinal;

-- The processes of a launch, by rank.
-- query NodeOfLaunch(run_id INTEGER, launch INTEGER)
SELECT p.id, p.role_id, p.parent_process_id, coalesce(p.child_kind, '') AS child_kind /*TEXT*/,
  coalesce(p.child_evidence, '') AS child_evidence /*TEXT*/,
  coalesce(p.rank, f.name_rank) AS rank /*INTEGER?*/, e.kind AS kind /*TEXT?*/, e.evidence AS evidence /*TEXT?*/,
  e.last_us AS last_us /*INTEGER?*/, e.exit_code AS exit_code /*INTEGER?*/, e.signal AS signal /*INTEGER?*/,
  e.is_bystander AS is_bystander /*BOOLEAN?*/, e.ended_by_process_id AS ended_by_process_id /*INTEGER?*/
FROM process p JOIN launch n ON n.id = p.launch_id JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN process_end e ON e.process_id = p.id
WHERE n.run_id = :run_id AND n.ordinal = :launch ORDER BY rank, p.id;
