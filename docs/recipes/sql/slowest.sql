-- The twenty slowest successes, with where they went and when: a host that is there too often, or a
-- moment, is the lead to follow.
SELECT stage, row_name, kind, endpoint, worker, stage_s, latency_ms, ttfb_ms, bytes, object_owner,
       object_number
FROM measured ORDER BY latency_ms DESC, stage_index, end_ns, worker LIMIT 20;
