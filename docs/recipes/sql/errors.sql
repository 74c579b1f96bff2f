-- Failures by class, kind and address, over the whole measured stage, with when they began and ended.
SELECT stage, row_name, kind, endpoint, outcome, count(*) AS ops_failed,
       min(stage_s) AS first_s, max(stage_s) AS last_s
FROM measured_all WHERE NOT ok
GROUP BY stage_index, stage, row_name, kind, endpoint, outcome
ORDER BY stage_index, ops_failed DESC, row_name, kind, endpoint, outcome;
