-- Several runs as one table, a row for each run and kind: for a sweep over workers, sizes or hosts
-- (`SET VARIABLE run_dir = 'runs/*'`).
SELECT runs.started_at, runs.run_id, runs.workload, spans.workers_count, summary.stage,
       summary.row_name, summary.kind, summary.samples, summary.ops_per_s, summary.mib_per_s,
       summary.ops_failed, summary.latency_ms_p50, summary.latency_ms_p99
FROM summary JOIN runs USING (run_dir) JOIN spans USING (run_dir, stage_index, row_key)
ORDER BY runs.started_at, summary.stage_index, summary.row_name, summary.kind;
