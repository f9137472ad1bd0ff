-- query DeviceKernelToJoin(profile_id INTEGER)
SELECT id, name_id, start_ns, duration_ns, correlation, external_id
FROM kernel_run_row WHERE profile_id = :profile_id AND device IS NOT NULL ORDER BY id;
