"""The op log as the libraries of others have it. Each is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._spans import Ends, Span, WorkerKey

if TYPE_CHECKING:
    from ._run import Run

_GROUP = ["stage", "job", "worker"]


def operations(run: Run, engine: str, spans: list[Span] | None) -> Any:
    """Return the operations, all of them or those that lie wholly in spans."""
    if engine == "polars":
        return _polars(run, spans)
    if engine not in ("pyarrow", "pandas"):
        raise ValueError(f"{engine!r} is no engine: pyarrow, pandas, polars or duckdb")
    table = _arrow(run, spans)
    return table.to_pandas() if engine == "pandas" else table


def ends(run: Run, engine: str) -> dict[WorkerKey, Ends]:
    """Return when the first and the last measured operation of each worker ended."""
    if engine == "polars":
        import polars as pl

        ended = pl.col("end_ns")
        found = (
            pl.scan_parquet(run._parts(), glob=False)
            .filter(pl.col("measured"))
            .group_by(_GROUP)
            .agg(ended.min().alias("first"), ended.max().alias("last"))
            .collect()
            .to_dicts()
        )
    else:
        import pyarrow.compute as pc

        only = pc.field("measured")
        ended = _dataset(run).to_table(columns=[*_GROUP, "end_ns"], filter=only)
        grouped = ended.group_by(_GROUP)
        table = grouped.aggregate([("end_ns", "min"), ("end_ns", "max")])
        found = table.rename_columns({"end_ns_min": "first", "end_ns_max": "last"}).to_pylist()
    return {(row["stage"], row["job"], row["worker"]): (row["first"], row["last"]) for row in found}


def duckdb_spans(run: Run, connection: Any) -> list[Span]:
    """Return the spans as the view has them."""
    rows = connection.execute(
        "SELECT stage_index, list(job_index ORDER BY job_index), rule, began_ns, ended_ns "
        "FROM spans JOIN jobs USING (run_dir, stage_index, row_key) GROUP BY ALL ORDER BY 1, 2"
    ).fetchall()
    return [
        Span(stage, tuple(jobs), rule, began, ended) for stage, jobs, rule, began, ended in rows
    ]


def _names(run: Run) -> list[dict[str, Any]]:
    """Return what the manifest says of the jobs, a row each."""
    return [
        {
            "stage_index": stage.index,
            "job_index": job.index,
            "stage_name": stage.name,
            "stage_kind": stage.kind,
            "iteration_index": stage.iteration,
            "job_name": job.name,
            "row_name": stage.row_name(job),
            "stage_started_ns": stage.started_ns,
        }
        for stage in run.stages
        for job in stage.jobs
    ]


def _polars(run: Run, spans: list[Span] | None) -> Any:
    import polars as pl

    schema = {
        "stage_index": pl.UInt8,
        "job_index": pl.UInt8,
        "stage_name": pl.String,
        "stage_kind": pl.String,
        "iteration_index": pl.Int64,
        "job_name": pl.String,
        "row_name": pl.String,
        "stage_started_ns": pl.Int64,
    }
    names = pl.LazyFrame(_names(run), schema=schema)
    ops = pl.scan_parquet(run._parts(), glob=False)
    ops = ops.rename({"stage": "stage_index", "job": "job_index"})
    ops = ops.join(names, on=["stage_index", "job_index"], how="left", maintain_order="left")
    start, end, delay = pl.col("start_ns"), pl.col("end_ns"), pl.col("schedule_delay_ns")
    sent, receive = pl.col("last_byte_sent_ns"), pl.col("first_byte_to_end_ns")
    started = pl.lit(run.manifest["started_unix_ns"])
    ttfb = end - receive - pl.coalesce(sent, start)
    frame = ops.select(
        pl.lit(run.run_id).alias("run_id"),
        "stage_index",
        pl.col("stage_name").alias("stage"),
        "stage_kind",
        "iteration_index",
        "job_index",
        pl.col("job_name").alias("job"),
        "row_name",
        "worker",
        "kind",
        "endpoint",
        "outcome",
        (pl.col("outcome") == "ok").alias("ok"),
        pl.from_epoch(started + start, time_unit="ns")
        .dt.replace_time_zone("UTC")
        .alias("started_at"),
        ((end - pl.col("stage_started_ns")) / 1e9).alias("stage_s"),
        ((end - start + delay) / 1e6).alias("latency_ms"),
        ((end - start) / 1e6).alias("service_ms"),
        (delay / 1e6).alias("schedule_delay_ms"),
        (ttfb.clip(lower_bound=0) / 1e6).alias("ttfb_ms"),
        ((sent - start) / 1e6).alias("send_ms"),
        (receive / 1e6).alias("receive_ms"),
        "bytes",
        "objects_count",
        "object_owner",
        "object_number",
        "attempts",
        "start_ns",
        "end_ns",
        (end - start + delay).alias("latency_ns"),
        "measured",
    )
    if spans is None:
        return frame
    inside = pl.lit(False)
    for span in spans:
        inside = inside | (
            (pl.col("stage_index") == span.stage_index)
            & pl.col("job_index").is_in(list(span.job_indices))
            & (start >= span.began_ns)
            & (end > span.began_ns)
            & (end <= span.ended_ns)
        )
    return frame.filter(pl.col("ok") & pl.col("measured") & inside)


def _dataset(run: Run) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset([str(part) for part in run._parts()], format="parquet")


def _arrow(run: Run, spans: list[Span] | None) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _dataset(run).to_table(filter=None if spans is None else _inside(spans))
    column = table.column
    start, end, delay = column("start_ns"), column("end_ns"), column("schedule_delay_ns")
    sent, receive = column("last_byte_sent_ns"), column("first_byte_to_end_ns")
    latency = pc.add(pc.subtract(end, start), delay)
    ttfb = pc.subtract(pc.subtract(end, receive), pc.coalesce(sent, start))
    started = pc.add(start, pa.scalar(run.manifest["started_unix_ns"], pa.int64()))

    def ms(times: Any) -> Any:
        return pc.divide(pc.cast(times, pa.float64()), 1e6)

    names = _names(run)
    keys = pa.array([_job_key(row["stage_index"], row["job_index"]) for row in names], pa.int32())
    stage, job = (pc.cast(column(name), pa.int32()) for name in ("stage", "job"))
    # As `_job_key` has it.
    places = pc.index_in(pc.add(pc.multiply(stage, 256), job), value_set=keys)

    def named(field: str, kind: Any) -> Any:
        return pc.take(pa.array([row[field] for row in names], kind), places)

    stage_s = pc.divide(
        pc.cast(pc.subtract(end, named("stage_started_ns", pa.int64())), pa.float64()), 1e9
    )
    columns = {
        "run_id": pa.array([run.run_id] * len(table), pa.string()),
        "stage_index": column("stage"),
        "stage": named("stage_name", pa.string()),
        "stage_kind": named("stage_kind", pa.string()),
        "iteration_index": named("iteration_index", pa.int64()),
        "job_index": column("job"),
        "job": named("job_name", pa.string()),
        "row_name": named("row_name", pa.string()),
        "worker": column("worker"),
        "kind": column("kind"),
        "endpoint": column("endpoint"),
        "outcome": column("outcome"),
        "ok": pc.equal(column("outcome"), "ok"),
        "started_at": pc.cast(started, pa.timestamp("ns", "UTC")),
        "stage_s": stage_s,
        "latency_ms": ms(latency),
        "service_ms": ms(pc.subtract(end, start)),
        "schedule_delay_ms": ms(delay),
        "ttfb_ms": ms(pc.max_element_wise(ttfb, 0, skip_nulls=False)),
        "send_ms": ms(pc.subtract(sent, start)),
        "receive_ms": ms(receive),
        **{name: column(name) for name in _AS_RECORDED},
        "latency_ns": latency,
        "measured": column("measured"),
    }
    return pa.table(columns)


def _job_key(stage: int, job: int) -> int:
    """Return one number for a stage and a job, which are bytes."""
    return stage * 256 + job


#: Columns that are handed on as the op log has them.
_AS_RECORDED = [
    "bytes",
    "objects_count",
    "object_owner",
    "object_number",
    "attempts",
    "start_ns",
    "end_ns",
]


def _inside(spans: list[Span]) -> Any:
    import pyarrow.compute as pc

    is_counted = (pc.field("outcome") == "ok") & pc.field("measured")
    inside = pc.scalar(False)
    for span in spans:
        inside = inside | (
            (pc.field("stage") == span.stage_index)
            & pc.field("job").isin(list(span.job_indices))
            & (pc.field("start_ns") >= span.began_ns)
            & (pc.field("end_ns") > span.began_ns)
            & (pc.field("end_ns") <= span.ended_ns)
        )
    return is_counted & inside
