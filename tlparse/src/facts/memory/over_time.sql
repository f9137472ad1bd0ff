-- query RecordingOverTime(snapshot_id INTEGER)
SELECT profile_id, event_count, start_ns, taken_ns, oom_ordinal FROM memory_snapshot_row WHERE id = :snapshot_id;

-- query TimeOfEvent(snapshot_id INTEGER)
SELECT ordinal, time_ns FROM memory_event_row WHERE snapshot_id = :snapshot_id ORDER BY id;

-- query CategoryOfSite(profile_id INTEGER)
SELECT site_id, category /*INTEGER*/ FROM memory_site_link_row WHERE profile_id = :profile_id;
