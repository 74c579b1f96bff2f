-- Throughput over time: what ended in each second of the measured stage. A large object counts in the
-- second in which it ended; `cells.sql` has bytes by the second in which they moved.
SELECT stage, second, sum(ops_ok) AS ops_ok, sum(ops_failed) AS ops_failed,
       sum(mib_ended) AS mib_ended, max(latency_ms_p99) AS worst_p99_ms
FROM seconds GROUP BY stage_index, stage, second ORDER BY stage_index, second;
