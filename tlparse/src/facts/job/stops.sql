-- The longest pause between two records of a compile inside an event of the name of another one, from
-- its begin to its end. A log that ends inside the event shows not all of its pauses: then those of the
-- whole compile count. Phases: 66 B (no end), 88 X.
-- query PauseInEvent(compile_id INTEGER, event_record_id INTEGER)
SELECT max(us - earlier_us) AS longest_us /*INTEGER*/, count(*) AS records /*INTEGER*/
FROM (SELECT r.local_us AS us,
    lag(r.local_us) OVER (PARTITION BY e.record_id ORDER BY r.id) AS earlier_us
  FROM compile c
    JOIN chromium_event_row e ON e.record_id BETWEEN c.first_record_id AND c.last_record_id
      AND e.compile_id = c.id AND e.phase IN (66, 88)
    JOIN record_row r ON r.process_id = c.process_id
      AND r.id BETWEEN CASE e.phase WHEN 66 THEN c.first_record_id ELSE coalesce(e.begin_record_id, e.record_id) END
        AND CASE e.phase WHEN 88 THEN e.record_id ELSE c.last_record_id END
  WHERE c.id = :compile_id AND e.name_id =
    (SELECT name_id FROM chromium_event_row WHERE record_id = :event_record_id));

-- query EventsOfProcess(name TEXT, in_logs SQL)
SELECT r.process_id, count(*) AS events /*INTEGER*/
FROM chromium_event_row e JOIN record_row r ON r.id = e.record_id
WHERE e.name_id = (SELECT id FROM text_row WHERE text = :name) AND {in_logs} GROUP BY r.process_id;

-- Lookups of a compile that hit.
-- query HitsOfCompile(compile_id INTEGER)
SELECT count(*) AS hits /*INTEGER*/ FROM cache_event
WHERE compile_id = :compile_id AND state = 'hit' AND layer IN ('aotautograd', 'fx_graph_bundled');

-- query CollectivesOfCompile(compile_id INTEGER)
SELECT EXISTS (SELECT 1 FROM collective_use_row WHERE compile_id = :compile_id) AS has_collectives /*BOOLEAN*/,
  EXISTS (SELECT 1 FROM collective_use_row u JOIN collective_row c ON c.content_id = u.content_id
  WHERE u.compile_id = :compile_id AND c.group_name = '0') AS are_of_all /*BOOLEAN*/;
