-- Modules (torch.nn.Module) that ran in a profile: Python frames named "nn.Module: <class>_<number>", which torch.profiler records with
-- with_stack=True. Logs of torch.compile do not name the module of a kernel; so a module is known only by when it was open on a thread.
--
-- Rule: a kernel belongs to the innermost module that was open on the thread that enqueued it, at that time (if the call that enqueued it is
-- not in the profile: of the op around the call), or where it began if it ran on the CPU. Kernels of a backward, and of a replayed device
-- graph outside any module, belong to none: autograd runs backwards outside modules. The kernels' times of all modules and of none
-- add up to the time of all kernels.

-- One run of a module, made by the join.
CREATE TABLE module_link_row (
  frame_id INTEGER PRIMARY KEY REFERENCES python_frame_row(id),
  parent_id INTEGER REFERENCES python_frame_row(id), -- the run of the module around it; NULL: none
  path_id INTEGER NOT NULL REFERENCES text_row(id),  -- modules around it and itself: Model_0/Encoder_0/Linear_3, a "/" of a name as "_"
  self_ns INTEGER NOT NULL        -- its time less that of the modules directly inside it
) STRICT;

-- The module that each kernel run belongs to; kernels without one have no row.
CREATE TABLE kernel_module_link_row (
  kernel_run_id INTEGER PRIMARY KEY REFERENCES kernel_run_row(id),
  frame_id INTEGER NOT NULL REFERENCES python_frame_row(id)
) STRICT;

-- One run of one module.
CREATE VIEW module_run AS
  SELECT m.frame_id AS id, y.profile_id, p.process_id, p.rank, t.text AS path, m.parent_id, y.start_ns / 1e3 AS start_us,
    y.duration_ns / 1e3 AS duration_us, m.self_ns / 1e3 AS self_us, y.start_ns, y.duration_ns, y.thread_id
  FROM module_link_row m JOIN python_frame_row y ON y.id = m.frame_id JOIN profile p ON p.id = y.profile_id
  LEFT JOIN text_row t ON t.id = m.path_id;

-- Modules by their path: how often each ran, its time on the CPU without the modules inside it, and the kernels that it enqueued itself.
-- path NULL: kernels of no module. `tlparse cost --by module` counts the steps of a profile only, and adds up the modules inside.
CREATE VIEW module_cost AS
  WITH ran AS (
    SELECT y.profile_id, m.path_id, count(*) AS calls, sum(m.self_ns / 1e3) AS cpu_us, NULL AS kernels, NULL AS kernel_us
    FROM module_link_row m JOIN python_frame_row y ON y.id = m.frame_id GROUP BY y.profile_id, m.path_id
    UNION ALL
    SELECT r.profile_id, m.path_id, 0, 0, count(*), sum(r.duration_ns / 1e3)
    FROM kernel_run_row r LEFT JOIN kernel_module_link_row l ON l.kernel_run_id = r.id LEFT JOIN module_link_row m ON m.frame_id = l.frame_id
    WHERE r.profile_id IN (SELECT y.profile_id FROM module_link_row n JOIN python_frame_row y ON y.id = n.frame_id)
    GROUP BY r.profile_id, m.path_id)
  SELECT p.run_id, p.process_id, p.rank, t.text AS path, sum(ran.calls) AS calls, sum(ran.cpu_us) AS cpu_us,
    coalesce(sum(ran.kernels), 0) AS kernels, sum(ran.kernel_us) AS kernel_us
  FROM ran JOIN profile p ON p.id = ran.profile_id AND p.overlaps_id IS NULL LEFT JOIN text_row t ON t.id = ran.path_id
  GROUP BY p.run_id, p.process_id, p.rank, ran.path_id;
