"""What to ask of a run with pandas: `python pandas_recipes.py RUN [OTHER RUN]...`

Needs `pip install plimsoll-bench pandas pyarrow`. Each function is a recipe, to be copied.
"""

import sys
from collections.abc import Callable

import numpy as np
import pandas as pd

import plimsoll_bench

#: The rows of the report: jobs that ran at once have figures of their own.
ROW = ["stage_index", "stage", "row_name", "kind"]


def rank(percent: float) -> Callable[[pd.Series], float]:
    """The nearest rank, as in the report: a value that occurred, with at least one beyond it."""

    def of(times: pd.Series) -> float:
        if len(times) * (100 - percent) < 100 * (1 - 1e-9):
            return np.nan
        return np.quantile(times, percent / 100, method="inverted_cdf")

    return of


def percentiles(run: plimsoll_bench.Run) -> pd.DataFrame:
    """Latency by stage and kind: successes of the measured stages, within the measured span."""
    measured = run.operations("pandas", measured=True)
    return measured.groupby(ROW).latency_ms.agg(
        samples="size", p50_ms=rank(50), p90_ms=rank(90), p99_ms=rank(99), max_ms="max"
    )


def throughput(run: plimsoll_bench.Run, seconds: float = 1.0) -> pd.DataFrame:
    """Measured successes, and their MiB, that ended in each stretch of the measured stages."""
    ops = run.operations("pandas")
    done = ops[(ops.stage_kind == "measure") & ops.measured & ops.ok]
    at = (done.stage_s // seconds * seconds).rename("second")
    ended = done.groupby(["stage_index", "stage", at]).agg(
        ops_ok=("kind", "size"), bytes=("bytes", "sum")
    )
    return ended.assign(mib_per_s=ended.bytes / 2**20 / seconds, ops_per_s=ended.ops_ok / seconds)


def errors(run: plimsoll_bench.Run) -> pd.DataFrame:
    """Measured failures by class and address, and when they began and ended."""
    ops = run.operations("pandas")
    failed = ops[(ops.stage_kind == "measure") & ops.measured & ~ops.ok]
    return failed.groupby([*ROW, "endpoint", "outcome"]).agg(
        ops_failed=("kind", "size"), first_s=("stage_s", "min"), last_s=("stage_s", "max")
    )


def slowest(run: plimsoll_bench.Run, count: int = 20) -> pd.DataFrame:
    """The slowest successes, with where they went and when."""
    measured = run.operations("pandas", measured=True)
    columns = [*ROW, "endpoint", "worker", "stage_s", "latency_ms", "ttfb_ms", "bytes"]
    return measured.nlargest(count, "latency_ms")[columns]


def compare(before: plimsoll_bench.Run, after: plimsoll_bench.Run) -> pd.DataFrame:
    """Percentiles of two runs side by side. `plimsoll compare` says whether that is chance."""
    both = percentiles(before).add_suffix("_before").join(percentiles(after).add_suffix("_after"))
    change = 100 * (both.p99_ms_after / both.p99_ms_before - 1)
    return both.assign(p99_change_percent=change)


def client_and_store(run: plimsoll_bench.Run) -> pd.DataFrame:
    """Means of the parts of a latency: waiting in the client, sending, store, receiving."""
    ops = run.operations("pandas", measured=True)
    send, receive = ops.send_ms.fillna(0), ops.receive_ms.fillna(0)
    parts = pd.DataFrame(
        {
            **{column: ops[column] for column in ROW},
            "client_wait_ms": ops.schedule_delay_ms,
            "send_ms": send,
            "store_ms": ops.service_ms - send - receive,
            "receive_ms": receive,
            "latency_ms": ops.latency_ms,
        }
    )
    return parts.groupby(ROW).mean()


def join_runs(runs: list[plimsoll_bench.Run]) -> pd.DataFrame:
    """Percentiles of several runs in one table."""
    return pd.concat({run.run_id: percentiles(run) for run in runs}, names=["run_id"])


def main(places: list[str]) -> None:
    runs = [plimsoll_bench.load(place) for place in places]
    for recipe in (percentiles, throughput, errors, slowest, client_and_store):
        print(f"{recipe.__name__}: {recipe.__doc__}\n{recipe(runs[0]).to_string()}\n")
    if len(runs) == 2:
        print(f"compare: {compare.__doc__}\n{compare(*runs).to_string()}\n")
    print(f"join_runs: {join_runs.__doc__}\n{join_runs(runs).to_string()}")


if __name__ == "__main__":
    main(sys.argv[1:])
