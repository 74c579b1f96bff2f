-- Views over runs of plimsoll, for DuckDB 1.3 and later. First say which runs, then read this file:
--
--     SET VARIABLE run_dir = 'my-run';                   -- one run
--     SET VARIABLE run_dir = 'runs/*';                   -- all runs that a pattern finds
--     SET VARIABLE run_dir = ['before-1', 'after-1'];    -- several, each a path or a pattern
--     .read views.sql
--
-- In a pattern `*`, `?` and `[` stand for others; where the path of a run holds one of them, write it
-- in brackets: `run[[]1]` is the run `run[1]`. Nothing here checks the checksums of the files:
-- `plimsoll analyze` does, and so does `plimsoll_bench.connect` in Python.
--
-- The variable may be set anew at any time: the views read it when they are asked.
--
--   runs          a row for each run: what run.json says of it
--   jobs          a row for each job of each stage, with its stage
--   operations    every operation of every stage, failed ones too, with names and times in units
--                 (`measured`: outside of ramps, so that the report counts it)
--   spans         from when to when each row of the report was measured, and by which rule
--   measured_all  the measured operations of the measured stages, failed ones too, with `share`:
--                 which part of each lies in the measured span. For rates and errors
--   measured      the successes that lie wholly in the measured span: those whose latencies are in
--                 the report. For percentiles
--   summary       a row for each run, stage, row and kind: counts, rates and percentiles
--   seconds       the same in each second of the measured stages: counts, errors, throughput, p99
--
-- What differs from the report is in docs/recipes/README.md.

CREATE OR REPLACE MACRO plimsoll_places(ending) AS list_transform(
    coalesce(try_cast(getvariable('run_dir') AS VARCHAR[]), [getvariable('run_dir')::VARCHAR]),
    lambda place: rtrim(place, '/') || ending);

-- A percentile, where at least one value lies beyond it, as the report has it: p99 of 100 and more.
CREATE OR REPLACE MACRO plimsoll_percentile(times, share) AS
    CASE WHEN count(times) * (1 - share) > 1 - 1e-9 THEN quantile_disc(times, share) END;

CREATE OR REPLACE VIEW runs AS
SELECT parse_dirpath(filename) AS run_dir, run_id, state, started_unix_ns,
       make_timestamp_ns(started_unix_ns) AS started_at, tool.version AS version,
       seed, workload->>'name' AS workload,
       target.kind AS target_kind,
       list_concat(target.endpoints,
                   flatten(list_transform(more_targets, lambda more: more.endpoints))) AS endpoints,
       machine.hostname AS hostname,
       stages AS stage_list
FROM read_json(
    plimsoll_places('/run.json'), filename = true, format = 'unstructured',
    maximum_object_size = 67108864,
    columns = {
        run_id: 'VARCHAR', state: 'VARCHAR', started_unix_ns: 'BIGINT', seed: 'UBIGINT',
        tool: 'STRUCT(name VARCHAR, version VARCHAR)', workload: 'JSON',
        machine: 'STRUCT(hostname VARCHAR)',
        target: 'STRUCT(kind VARCHAR, endpoints VARCHAR[])',
        more_targets: 'STRUCT(endpoints VARCHAR[])[]',
        stages: 'STRUCT("index" INTEGER, kind VARCHAR, name VARCHAR, iteration INTEGER,
                        started_ns BIGINT, ended_ns BIGINT, loop_model VARCHAR,
                        workers_count BIGINT,
                        jobs STRUCT("name" VARCHAR, work VARCHAR, "group" INTEGER,
                                    is_on_files BOOLEAN, loop_model VARCHAR,
                                    workers_count BIGINT, measured_from_ns BIGINT,
                                    measured_until_ns BIGINT, planned_until_ns BIGINT,
                                    schedule STRUCT(offered_until_ns BIGINT))[])[]'
    });

CREATE OR REPLACE VIEW jobs AS
WITH stages AS (
    SELECT run_dir, run_id, stage_list, unnest(stage_list) AS stage FROM runs
), numbered AS (
    SELECT run_dir, run_id, stage,
           -- A killed run did not write down when its last stage began: when the one before ended.
           coalesce(stage.started_ns, stage_list[stage."index"].ended_ns, 0) AS stage_started_ns,
           unnest(stage.jobs) AS job, generate_subscripts(stage.jobs, 1) - 1 AS job_index
    FROM stages
), keyed AS (
    SELECT numbered.*,
           -- Jobs of one group share a row of the report, those on objects apart from those on files.
           coalesce(format('{}/{}', job."group", job.is_on_files),
                    'job ' || job_index) AS row_key
    FROM numbered
)
SELECT run_dir, run_id, stage."index" AS stage_index, stage.name AS stage,
       stage.kind AS stage_kind, stage.iteration AS iteration_index, stage.loop_model AS stage_loop,
       stage_started_ns, stage.ended_ns AS stage_ended_ns,
       job_index::INTEGER AS job_index, job."name" AS job, job.work AS work,
       row_key,
       string_agg(job."name", ' + ') OVER (
           PARTITION BY run_dir, stage."index", row_key ORDER BY job_index
           ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS row_name,
       job.is_on_files AS on_files, job.loop_model = 'open' AS is_open,
       job.workers_count AS workers_count,
       -- From when to when what was due counts: with ramps not all of the stage.
       stage_started_ns + coalesce(job.measured_from_ns, 0) AS measured_from_ns,
       stage_started_ns + job.measured_until_ns AS measured_until_ns,
       -- When its measuring was to end: its schedule, or the last worker's duration.
       stage_started_ns + coalesce(job.schedule.offered_until_ns, job.planned_until_ns) AS ends_ns
FROM keyed;

CREATE OR REPLACE VIEW operations AS
SELECT jobs.run_id, jobs.run_dir, jobs.stage_index, jobs.stage, jobs.stage_kind,
       jobs.iteration_index, ops.job AS job_index, jobs.job, jobs.row_key, jobs.row_name, ops.worker, ops.kind,
       ops.endpoint, ops.outcome, ops.outcome = 'ok' AS ok,
       make_timestamp_ns(runs.started_unix_ns + ops.start_ns) AS started_at,
       (ops.end_ns - jobs.stage_started_ns) / 1e9 AS stage_s,
       (ops.end_ns - ops.start_ns + ops.schedule_delay_ns) / 1e6 AS latency_ms,
       (ops.end_ns - ops.start_ns) / 1e6 AS service_ms,
       ops.schedule_delay_ns / 1e6 AS schedule_delay_ms,
       -- From the last byte of the request, or the start, to the first of the answer.
       CASE WHEN ops.first_byte_to_end_ns IS NOT NULL
            THEN greatest(ops.end_ns - ops.first_byte_to_end_ns
                          - coalesce(ops.last_byte_sent_ns, ops.start_ns), 0) / 1e6 END AS ttfb_ms,
       (ops.last_byte_sent_ns - ops.start_ns) / 1e6 AS send_ms,
       ops.first_byte_to_end_ns / 1e6 AS receive_ms,
       ops.bytes, ops.objects_count, ops.object_owner, ops.object_number, ops.attempts,
       ops.start_ns, ops.end_ns,
       ops.end_ns - ops.start_ns + ops.schedule_delay_ns AS latency_ns,
       ops.measured
FROM read_parquet(plimsoll_places('/ops/*.parquet'), filename = true) AS ops
JOIN jobs ON jobs.run_dir = parse_dirpath(parse_dirpath(ops.filename))
         AND jobs.stage_index = ops.stage AND jobs.job_index = ops.job
JOIN runs ON runs.run_dir = jobs.run_dir;

CREATE OR REPLACE VIEW spans AS
WITH ends AS (
    SELECT run_dir, stage_index, row_key, worker, min(end_ns) AS first_end,
           -- With a ramp-down what is under way when the duration ends counts up to there.
           max(least(end_ns, measured_until_ns)) AS last_end
    FROM operations JOIN jobs USING (run_dir, stage_index, row_key, job_index)
    WHERE operations.stage_kind = 'measure' AND measured
    GROUP BY run_dir, stage_index, row_key, worker
), laid AS (
    SELECT run_dir, stage_index, row_key, max(first_end) AS all_ran, min(last_end) AS first_done,
           max(last_end) AS last_done
    FROM ends GROUP BY ALL
), of_rows AS (
    SELECT run_dir, run_id, stage_index, stage, iteration_index, row_key,
           row_name, bool_or(on_files) AS on_files,
           bool_or(is_open) AS is_open, min(measured_from_ns) AS row_began,
           max(stage_ended_ns) AS stage_ended_ns,
           -- Jobs that may be done early have no end, and hide that of no other.
           max(ends_ns) AS ends_ns,
           sum(workers_count) AS workers_count
    FROM jobs WHERE stage_kind = 'measure' GROUP BY ALL
), ended AS (
    SELECT of_rows.*, greatest(all_ran, row_began) AS all_ran, first_done, last_done,
           -- A row ends when it does itself, or was to: another one may go on.
           least(greatest(ends_ns, last_done), stage_ended_ns) AS ended
    FROM of_rows JOIN laid USING (run_dir, stage_index, row_key)
), both_ends AS (
    SELECT *, NOT on_files AND NOT is_open AND first_done > all_ran
           AND first_done - all_ran >= (ended - row_began) // 10 AS all_workers
    FROM ended
)
SELECT run_dir, run_id, stage_index, stage, iteration_index, row_key, row_name, workers_count,
       CASE WHEN on_files THEN 'from-ramps' WHEN is_open THEN 'schedule'
            WHEN all_workers THEN 'all-workers' ELSE 'full-too-short' END AS rule,
       CASE WHEN all_workers THEN all_ran ELSE row_began END AS began_ns,
       CASE WHEN all_workers THEN first_done WHEN on_files THEN last_done ELSE ended END AS ended_ns,
       (CASE WHEN all_workers THEN first_done WHEN on_files THEN last_done ELSE ended END
        - CASE WHEN all_workers THEN all_ran ELSE row_began END) / 1e9 AS length_s
FROM both_ends;

CREATE OR REPLACE VIEW measured_all AS
SELECT operations.*, spans.rule, spans.began_ns, spans.ended_ns, spans.length_s,
       -- An operation that lasted no time is on the side on which it ended.
       CASE WHEN end_ns > start_ns
            THEN greatest(least(end_ns, ended_ns) - greatest(start_ns, began_ns), 0)
                 / (end_ns - start_ns)
            ELSE (end_ns > began_ns AND end_ns <= ended_ns)::INTEGER END AS share
FROM operations JOIN spans USING (run_dir, stage_index, row_key)
WHERE operations.stage_kind = 'measure' AND measured;

CREATE OR REPLACE VIEW measured AS
SELECT * FROM measured_all
WHERE ok AND start_ns >= began_ns AND end_ns > began_ns AND end_ns <= ended_ns;

CREATE OR REPLACE VIEW summary AS
WITH counts AS (
    SELECT run_id, run_dir, stage_index, stage, iteration_index, row_key, row_name, kind,
           count(*) FILTER (ok) AS ops_ok, count(*) FILTER (NOT ok) AS ops_failed,
           -- Where all failed that is 0, not nothing.
           sum(share * ok::INTEGER) / any_value(length_s) AS ops_per_s,
           sum(share * bytes * ok::INTEGER) / any_value(length_s) / 1048576 AS mib_per_s
    FROM measured_all GROUP BY ALL
), times AS (
    SELECT run_dir, stage_index, row_key, kind, count(*) AS samples,
           avg(latency_ms) AS latency_ms_mean,
           plimsoll_percentile(latency_ms, 0.5) AS latency_ms_p50,
           plimsoll_percentile(latency_ms, 0.9) AS latency_ms_p90,
           plimsoll_percentile(latency_ms, 0.99) AS latency_ms_p99,
           plimsoll_percentile(latency_ms, 0.999) AS latency_ms_p99_9,
           max(latency_ms) AS latency_ms_max,
           plimsoll_percentile(ttfb_ms, 0.5) AS ttfb_ms_p50,
           plimsoll_percentile(ttfb_ms, 0.99) AS ttfb_ms_p99
    FROM measured GROUP BY ALL
)
SELECT counts.*, times.* EXCLUDE (run_dir, stage_index, row_key, kind)
FROM counts LEFT JOIN times USING (run_dir, stage_index, row_key, kind);

CREATE OR REPLACE VIEW seconds AS
SELECT run_id, run_dir, stage_index, stage, iteration_index, row_name, kind,
       floor(stage_s)::INTEGER AS second, count(*) FILTER (ok) AS ops_ok,
       count(*) FILTER (NOT ok) AS ops_failed,
       coalesce(sum(bytes) FILTER (ok), 0) / 1048576 AS mib_ended,
       plimsoll_percentile(CASE WHEN ok THEN latency_ms END, 0.5) AS latency_ms_p50,
       plimsoll_percentile(CASE WHEN ok THEN latency_ms END, 0.99) AS latency_ms_p99
FROM measured_all GROUP BY ALL;
