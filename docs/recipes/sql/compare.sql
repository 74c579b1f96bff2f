-- Two runs side by side (`SET VARIABLE run_dir = ['before', 'after']`), and by how much the second
-- differs, in percent. Whether a difference is more than chance, `plimsoll compare` says.
WITH places AS (
    SELECT run_dir, row_number() OVER (ORDER BY started_unix_ns) AS place FROM runs
), numbered AS (
    -- Stages may share a name: the second `main` of a run is held against the other's second.
    SELECT DISTINCT run_dir, stage_index,
           dense_rank() OVER (PARTITION BY run_dir, stage, iteration_index
                              ORDER BY stage_index) AS stage_number
    FROM jobs
), sides AS (
    SELECT place, stage, iteration_index, stage_number, row_name, kind, samples, ops_per_s,
           latency_ms_p50, latency_ms_p99
    FROM summary JOIN places USING (run_dir) JOIN numbered USING (run_dir, stage_index)
)
SELECT CASE stage_number WHEN 1 THEN stage ELSE format('{} #{}', stage, stage_number) END AS stage,
       row_name, kind, before.samples AS samples_before, after.samples AS samples_after,
       before.ops_per_s AS ops_per_s_before, after.ops_per_s AS ops_per_s_after,
       100 * (after.ops_per_s / before.ops_per_s - 1) AS ops_per_s_change_percent,
       before.latency_ms_p99 AS p99_ms_before, after.latency_ms_p99 AS p99_ms_after,
       100 * (after.latency_ms_p99 / before.latency_ms_p99 - 1) AS p99_change_percent
FROM (FROM sides WHERE place = 1) AS before
JOIN (FROM sides WHERE place = 2) AS after
     USING (stage, iteration_index, stage_number, row_name, kind)
ORDER BY 1, iteration_index, row_name, kind;
