"""Read the runs that ``plimsoll`` recorded.

    >>> import plimsoll_bench
    >>> run = plimsoll_bench.load("my-run")
    >>> [stage.name for stage in run.stages if stage.is_measured]
    ['measure']
    >>> run.operations("pandas", measured=True).groupby("kind").latency_ms.median()

The manifest and the summary need the standard library only. Operations are read by ``pyarrow``,
``pandas``, ``polars`` or ``duckdb``, which are imported when they are asked for. The files are
described in ``docs/formats`` of plimsoll.
"""

from ._run import (
    DamagedRecord,
    Engine,
    Job,
    Lane,
    Run,
    Stage,
    connect,
    load,
    views_sql,
)
from ._spans import Span
from .histogram import Histogram

__all__ = [
    "DamagedRecord",
    "Engine",
    "Histogram",
    "Job",
    "Lane",
    "Run",
    "Span",
    "Stage",
    "connect",
    "load",
    "views_sql",
]
