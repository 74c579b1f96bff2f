-- Where the time of an operation goes, on average, in parts that add up to the latency: it waits in
-- the client for its turn (open loops only), the request is sent, the store and the way to it take
-- until the first byte of the answer, and the rest of the answer comes in. The first part is no work
-- of the store; sending and receiving are the client's, the network's and the store's together.
SELECT stage, row_name, kind, count(*) AS samples,
       avg(schedule_delay_ms) AS client_wait_ms,
       avg(coalesce(send_ms, 0)) AS send_ms,
       avg(service_ms - coalesce(send_ms, 0) - coalesce(receive_ms, 0)) AS store_ms,
       avg(coalesce(receive_ms, 0)) AS receive_ms,
       avg(latency_ms) AS latency_ms
FROM measured
GROUP BY stage_index, stage, row_name, kind ORDER BY stage_index, row_name, kind;
