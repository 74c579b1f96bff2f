-- Percentiles of the latency by kind, of the measured stage only: failed operations, the stages that
-- prepare and clean, and the first and last moments of the workers are left out, as in the report. No
-- figure covers two rows of the report, which are jobs that ran at once. A percentile needs a value
-- beyond it: p99.9 is null of fewer than 1,000.
SELECT stage, row_name, kind, count(*) AS samples,
       plimsoll_percentile(latency_ms, 0.5) AS p50_ms,
       plimsoll_percentile(latency_ms, 0.9) AS p90_ms,
       plimsoll_percentile(latency_ms, 0.99) AS p99_ms,
       plimsoll_percentile(latency_ms, 0.999) AS p99_9_ms,
       max(latency_ms) AS max_ms
FROM measured
GROUP BY stage_index, stage, row_name, kind ORDER BY stage_index, row_name, kind;
