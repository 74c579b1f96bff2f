"""What to ask of a run with polars: `python polars_recipes.py RUN [OTHER RUN]...`

Needs `pip install plimsoll-bench polars`. The op log is read lazily: of a long run only the columns
that a recipe asks for. Each function is a recipe, to be copied.
"""

import sys

import polars as pl

import plimsoll_bench

#: The rows of the report: jobs that ran at once have figures of their own.
ROW = ["stage_index", "stage", "row_name", "kind"]


def _rank(percent: float) -> pl.Expr:
    """The nearest rank, as in the report: a value that occurred, with at least one beyond it."""
    # Nudged down by less than any true fraction: 99.9 % of 1,000 is rank 999.
    rank = (pl.len() * (percent / 100) * (1 - 1e-12)).ceil().cast(pl.Int64).clip(lower_bound=1)
    is_known = pl.len() * (100 - percent) > 100 * (1 - 1e-9)
    ranked = pl.col("latency_ms").sort().get(rank - 1)
    return pl.when(is_known).then(ranked).alias(f"p{percent:g}_ms")


def percentiles(run: plimsoll_bench.Run) -> pl.DataFrame:
    """Latency by stage and kind: successes of the measured stages, within the measured span."""
    return (
        run.operations("polars", measured=True)
        .group_by(ROW)
        .agg(
            pl.len().alias("samples"),
            *(_rank(percent) for percent in (50, 90, 99)),
            pl.col("latency_ms").max().alias("max_ms"),
        )
        .sort(ROW)
        .collect()
    )


def throughput(run: plimsoll_bench.Run, seconds: float = 1.0) -> pl.DataFrame:
    """Measured successes, and their MiB, that ended in each stretch of the measured stages."""
    return (
        run.operations("polars")
        .filter((pl.col("stage_kind") == "measure") & pl.col("measured") & pl.col("ok"))
        .group_by("stage_index", "stage", (pl.col("stage_s") // seconds * seconds).alias("second"))
        .agg(pl.len().alias("ops_ok"), (pl.col("bytes").sum() / 2**20).alias("mib"))
        .with_columns(
            (pl.col("ops_ok") / seconds).alias("ops_per_s"),
            (pl.col("mib") / seconds).alias("mib_per_s"),
        )
        .sort("stage_index", "second")
        .collect()
    )


def errors(run: plimsoll_bench.Run) -> pl.DataFrame:
    """Measured failures by class and address, and when they began and ended."""
    return (
        run.operations("polars")
        .filter((pl.col("stage_kind") == "measure") & pl.col("measured") & ~pl.col("ok"))
        .group_by(*ROW, "endpoint", "outcome")
        .agg(
            pl.len().alias("ops_failed"),
            pl.col("stage_s").min().alias("first_s"),
            pl.col("stage_s").max().alias("last_s"),
        )
        .sort("ops_failed", descending=True)
        .collect()
    )


def slowest(run: plimsoll_bench.Run, count: int = 20) -> pl.DataFrame:
    """The slowest successes, with where they went and when."""
    return (
        run.operations("polars", measured=True)
        .top_k(count, by="latency_ms")
        .select(*ROW, "endpoint", "worker", "stage_s", "latency_ms", "ttfb_ms", "bytes")
        .sort("latency_ms", descending=True)
        .collect()
    )


def compare(before: plimsoll_bench.Run, after: plimsoll_bench.Run) -> pl.DataFrame:
    """Percentiles of two runs side by side. `plimsoll compare` says whether that is chance."""
    both = percentiles(before).join(percentiles(after), on=ROW, suffix="_after")
    change = 100 * (pl.col("p99_ms_after") / pl.col("p99_ms") - 1)
    return both.with_columns(change.alias("p99_change_percent"))


def client_and_store(run: plimsoll_bench.Run) -> pl.DataFrame:
    """Means of the parts of a latency: waiting in the client, sending, store, receiving."""
    send, receive = pl.col("send_ms").fill_null(0), pl.col("receive_ms").fill_null(0)
    return (
        run.operations("polars", measured=True)
        .group_by(ROW)
        .agg(
            pl.col("schedule_delay_ms").mean().alias("client_wait_ms"),
            send.mean().alias("send_ms"),
            (pl.col("service_ms") - send - receive).mean().alias("store_ms"),
            receive.mean().alias("receive_ms"),
            pl.col("latency_ms").mean(),
        )
        .sort(ROW)
        .collect()
    )


def join_runs(runs: list[plimsoll_bench.Run]) -> pl.DataFrame:
    """Percentiles of several runs in one table."""
    named = (percentiles(run).with_columns(pl.lit(run.run_id).alias("run_id")) for run in runs)
    return pl.concat(named)


def main(places: list[str]) -> None:
    runs = [plimsoll_bench.load(place) for place in places]
    pl.Config.set_tbl_rows(100)
    pl.Config.set_tbl_cols(20)
    for recipe in (percentiles, throughput, errors, slowest, client_and_store):
        print(f"{recipe.__name__}: {recipe.__doc__}\n{recipe(runs[0])}\n")
    if len(runs) == 2:
        print(f"compare: {compare.__doc__}\n{compare(*runs)}\n")
    print(f"join_runs: {join_runs.__doc__}\n{join_runs(runs)}")


if __name__ == "__main__":
    main(sys.argv[1:])
