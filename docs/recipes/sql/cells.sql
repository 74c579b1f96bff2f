-- What summary.json says of each second of the run, by stage, kind and address: of a run whose op log
-- is gone, or too long to be read. Bytes count in the second in which they moved.
WITH files AS (
    SELECT parse_dirpath(filename) AS run_dir, origin_ns, interval_ns, unnest(lanes) AS lane
    FROM read_json(
        plimsoll_places('/summary.json'), filename = true, format = 'unstructured',
        maximum_object_size = 1073741824,
        columns = {
            origin_ns: 'BIGINT', interval_ns: 'BIGINT',
            lanes: 'STRUCT(stage INTEGER, kind VARCHAR, endpoint INTEGER,
                           cells STRUCT(interval_index BIGINT, ended MAP(VARCHAR, BIGINT),
                                        bytes BIGINT, objects_micro BIGINT)[])[]'
        })
), cells AS (
    SELECT run_dir, origin_ns, interval_ns, lane, unnest(lane.cells) AS cell FROM files
)
SELECT cells.run_dir, runs.run_id, lane.stage AS stage_index,
       runs.stage_list[lane.stage + 1].name AS stage, runs.stage_list[lane.stage + 1].kind AS stage_kind,
       lane.kind AS kind, runs.endpoints[lane.endpoint + 1] AS endpoint,
       (origin_ns + cell.interval_index * interval_ns) / 1e9 AS run_s,
       coalesce(cell.ended['ok'], 0) AS ops_ok,
       coalesce(list_sum(map_values(cell.ended)), 0) - coalesce(cell.ended['ok'], 0) AS ops_failed,
       cell.bytes AS bytes
FROM cells JOIN runs USING (run_dir)
ORDER BY runs.started_unix_ns, stage_index, run_s, kind, endpoint;
