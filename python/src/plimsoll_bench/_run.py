"""The run directory: manifest, summary, op log."""

from __future__ import annotations

import glob
import json
import os
import stat
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from importlib import resources
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from . import _engines
from ._checksum import is_whole
from ._spans import Span, lay
from .histogram import Histogram

Engine = Literal["pyarrow", "pandas", "polars", "duckdb"]

_RUN_SCHEMA = "plimsoll.run/1"
_SUMMARY_SCHEMA = "plimsoll.summary/1"
#: More than any document of a run has.
_DOCUMENT_BYTES_MAX = 64 << 20


class DamagedRecord(ValueError):
    """A file of a run is not as it was written, or of a version that is not known here."""


@dataclass(frozen=True)
class Job:
    """One of the jobs of a stage, which run at once."""

    index: int
    name: str
    work: str | None
    #: ``closed``, ``capped`` or ``open``.
    loop_model: str
    workers_count: int
    #: Jobs of one group share a row of the report.
    group: int | None
    #: Whether it works on files, not on objects.
    on_files: bool
    #: From when to when what was due counts, since the start of the stage; all of it without ramps.
    measured_from_ns: int = 0
    measured_until_ns: int | None = None
    #: When its measuring was to end: its schedule, or the last worker's duration; ``None`` where
    #: neither is known.
    ends_ns: int | None = None


@dataclass(frozen=True)
class Stage:
    """One of the stages of a run, in the order in which they ran."""

    index: int
    name: str
    #: ``prepare``, ``measure`` or ``cleanup``.
    kind: str
    #: Which repetition it is, 0-based.
    iteration: int
    #: Nanoseconds since the run's epoch. Of the last stage of a killed run, which did not write it
    #: down, when the stage before ended.
    started_ns: int
    #: The same; ``None`` where a killed run did not write it down.
    ended_ns: int | None
    ops_count: int | None
    ops_failed_count: int | None
    jobs: tuple[Job, ...]

    @property
    def is_measured(self) -> bool:
        """Tell whether its figures are a result."""
        return self.kind == "measure"

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """Return the jobs of each row of the report, by their index: one, or those of a group."""
        rows: dict[object, list[int]] = {}
        for job in self.jobs:
            # Figures of objects and of files do not add up.
            key = job.index if job.group is None else (job.group, job.on_files)
            rows.setdefault(key, []).append(job.index)
        return tuple(tuple(row) for row in rows.values())

    def row_name(self, job: Job) -> str:
        """Return what the row of a job is called in the report."""
        row = next(row for row in self.rows if job.index in row)
        return " + ".join(self.jobs[index].name for index in row)


@dataclass(frozen=True)
class Lane:
    """What ``summary.json`` says of one kind of operation at one address in one stage.

    It covers the whole stage, its first and last moments too.
    """

    stage: Stage
    kind: str
    endpoint: str
    #: Operations that ended, by outcome, and bytes moved, by the second of the run.
    ended: dict[int, dict[str, int]]
    bytes: dict[int, int]
    latency: Histogram
    ttfb: Histogram

    @property
    def ops_ok_count(self) -> int:
        """Return how many operations succeeded."""
        return sum(outcomes.get("ok", 0) for outcomes in self.ended.values())

    @property
    def ops_failed_count(self) -> int:
        """Return how many operations failed."""
        return sum(sum(outcomes.values()) for outcomes in self.ended.values()) - self.ops_ok_count


@dataclass(frozen=True)
class Run:
    """A run directory."""

    path: Path
    #: ``run.json`` as it stands there.
    manifest: dict[str, Any]
    #: Whether parts of the op log are held against their checksums before they are read.
    verify: bool = True

    @property
    def run_id(self) -> str:
        """Return the name of the run."""
        return str(self.manifest["run_id"])

    @property
    def state(self) -> str:
        """Return ``complete``, ``interrupted``, ``failed``, or ``running``, which may be killed."""
        return str(self.manifest["state"])

    @property
    def started_at(self) -> datetime:
        """Return the wall time of the run's epoch, from which all moments count."""
        epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
        return epoch + timedelta(microseconds=self.manifest["started_unix_ns"] // 1_000)

    @cached_property
    def endpoints(self) -> tuple[str, ...]:
        """Return the addresses of all targets, in the order of their numbers."""
        targets = [self.manifest["target"], *self.manifest.get("more_targets", [])]
        return tuple(endpoint for target in targets for endpoint in target["endpoints"])

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages in the order in which they ran."""
        stages: list[Stage] = []
        for stage in self.manifest["stages"]:
            before = stages[-1].ended_ns if stages else None
            stages.append(_stage(stage, before or 0))
        return tuple(stages)

    def operations(self, engine: Engine = "pyarrow", *, measured: bool = False) -> Any:
        """Return every operation, with the columns of the view ``operations``.

        ``pyarrow`` returns a ``Table`` and ``pandas`` a ``DataFrame``, in memory; ``polars`` a
        ``LazyFrame`` and ``duckdb`` a relation, which are read as they are asked. With
        ``measured`` only the successes that lie wholly in the measured span: those whose latencies
        are in the report. Raises :class:`DamagedRecord` where a part is not as it was written.
        """
        if not self._parts():
            raise FileNotFoundError(
                f"{self.path}: the run has no complete part of an op log; `plimsoll export` writes "
                "what the open ones hold"
            )
        if engine == "duckdb":
            return _connected([self]).table("measured" if measured else "operations")
        return _engines.operations(self, engine, self.spans(engine) if measured else None)

    def spans(self, engine: Engine = "pyarrow") -> list[Span]:
        """Return the measured span of each row of the report, worked out of the op log."""
        if engine == "duckdb":
            return _engines.duckdb_spans(self, _connected([self]))
        return lay(self.stages, _engines.ends(self, engine))

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        """Return what ``summary.json`` says of each stage, kind and address."""
        summary = _read(self.path / "summary.json", _SUMMARY_SCHEMA)
        return tuple(self._lane(lane, summary) for lane in summary["lanes"])

    def latency(self, kind: str | None = None, stage: str | None = None) -> Histogram:
        """Return the latencies of the successes, out of ``summary.json``.

        Of all kinds and of all measured stages, unless some are named. The histogram covers whole
        stages, as ``plimsoll analyze --full-span`` does.
        """
        return Histogram.merged(lane.latency for lane in self._chosen(kind, stage))

    def ttfb(self, kind: str | None = None, stage: str | None = None) -> Histogram:
        """Return the times to first byte, as :meth:`latency`."""
        return Histogram.merged(lane.ttfb for lane in self._chosen(kind, stage))

    def _chosen(self, kind: str | None, stage: str | None) -> Iterator[Lane]:
        for lane in self.lanes:
            is_stage = lane.stage.is_measured if stage is None else lane.stage.name == stage
            if is_stage and kind in (None, lane.kind):
                yield lane

    def _lane(self, lane: dict[str, Any], summary: dict[str, Any]) -> Lane:
        def second(cell: dict[str, Any]) -> int:
            since = summary["origin_ns"] + cell["interval_index"] * summary["interval_ns"]
            return int(since // 1_000_000_000)

        def histogram(field: str) -> Histogram:
            stored = [times[field] for times in lane["times"] if times[field] is not None]
            return Histogram.merged(Histogram.from_json(each) for each in stored)

        return Lane(
            stage=self.stages[lane["stage"]],
            kind=lane["kind"],
            endpoint=self.endpoints[lane["endpoint"]],
            ended={second(cell): dict(cell["ended"]) for cell in lane["cells"]},
            bytes={second(cell): cell["bytes"] for cell in lane["cells"]},
            latency=histogram("latency_ns"),
            ttfb=histogram("ttfb_ns"),
        )

    @cached_property
    def _whole_parts(self) -> set[Path]:
        """Return the parts whose checksums were found to be right so far."""
        return set()

    def _parts(self) -> list[Path]:
        parts = sorted((self.path / "ops").glob("part-*.parquet"))
        if self.verify:
            for part in parts:
                if part not in self._whole_parts:
                    self._check(part)
                    self._whole_parts.add(part)
        return parts

    def _check(self, part: Path) -> None:
        is_part_whole = is_whole(_content(part))
        if is_part_whole is None:
            raise DamagedRecord(f"{part} is damaged: it has no checksum")
        if not is_part_whole:
            raise DamagedRecord(f"{part} is damaged: its checksum does not match")


def _stage(stage: dict[str, Any], ended_before_ns: int) -> Stage:
    started_ns = stage.get("started_ns")
    return Stage(
        index=stage["index"],
        name=stage["name"],
        kind=stage["kind"],
        iteration=stage.get("iteration", 0),
        started_ns=ended_before_ns if started_ns is None else started_ns,
        ended_ns=stage.get("ended_ns"),
        ops_count=stage.get("ops_count"),
        ops_failed_count=stage.get("ops_failed_count"),
        jobs=tuple(
            Job(
                index=index,
                name=job["name"],
                work=job.get("work"),
                loop_model=job["loop_model"],
                workers_count=job["workers_count"],
                group=job.get("group"),
                on_files=job["is_on_files"],
                measured_from_ns=job.get("measured_from_ns") or 0,
                measured_until_ns=job.get("measured_until_ns"),
                ends_ns=_ends_ns(job),
            )
            for index, job in enumerate(stage["jobs"])
        ),
    )


def _ends_ns(job: dict[str, Any]) -> int | None:
    offered_until_ns = (job.get("schedule") or {}).get("offered_until_ns")
    return job.get("planned_until_ns") if offered_until_ns is None else offered_until_ns


def _content(path: Path, most: int | None = None) -> bytes:
    """Return what a file of a record holds; a record may be made to hold its reader up."""
    if path.is_symlink():
        raise DamagedRecord(f"{path} is a symbolic link")
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise DamagedRecord(f"{path} is not a regular file")
        if most is not None and state.st_size > most:
            raise DamagedRecord(f"{path} is larger than {most} bytes")
        return file.read()


def _read(path: Path, schema: str) -> dict[str, Any]:
    content = _content(path, _DOCUMENT_BYTES_MAX)
    if is_whole(content) is False:
        raise DamagedRecord(f"{path} is damaged: its checksum does not match")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedRecord(f"{path} is no JSON: {error}") from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise DamagedRecord(f"{path} is of version {found}; this package reads {schema}")
    return document  # type: ignore[no-any-return]


def load(path: str | PathLike[str], *, verify: bool = True) -> Run:
    """Open a run directory.

    ``run.json`` and ``summary.json`` are checked against the checksum that they hold, and so is
    each part of the op log once, before its operations are first read: about a second for a
    million operations. ``verify=False`` leaves the parts unchecked. Parts that a killed run left
    open are not read, with a warning.

    Raises :class:`FileNotFoundError` where there is no run, and :class:`DamagedRecord` where it
    cannot be trusted.
    """
    place = Path(path)
    run = Run(place, _read(place / "run.json", _RUN_SCHEMA), verify)
    if any((place / "ops").glob("part-*.parquet.open")):
        warnings.warn(
            f"{place}: the run was killed or is still going on; the operations of its open parts "
            "are left out",
            stacklevel=2,
        )
    return run


def views_sql() -> str:
    """Return ``views.sql``: views for DuckDB over the runs that the variable ``run_dir`` names."""
    return resources.files(__package__).joinpath("views.sql").read_text("utf-8")


def connect(*runs: Run | str | PathLike[str], verify: bool = True) -> Any:
    """Return a connection of DuckDB, in memory, with the views of ``views.sql`` over runs.

    A run is a :class:`Run`, the path of one, or a pattern that finds some. Each is opened as
    :func:`load` does, and the parts of their op logs are checked at once, unless ``verify`` says
    not to. Raises as :func:`load`, and :class:`FileNotFoundError` where a pattern finds none.
    """
    opened: list[Run] = []
    for run in runs:
        found = [run] if isinstance(run, Run) else [load(at, verify=verify) for at in _places(run)]
        opened.extend(found)
    return _connected(opened)


def _places(named: str | PathLike[str]) -> list[Path]:
    """Return the run of that name, or the runs that it finds as a pattern."""
    place = fspath(named)
    if os.path.exists(os.path.join(place, "run.json")) or not glob.has_magic(place):
        return [Path(place)]
    found = sorted(glob.glob(os.path.join(place, "run.json"), recursive=True))
    if not found:
        raise FileNotFoundError(f"{place}: the pattern finds no run")
    return [Path(manifest).parent for manifest in found]


def _connected(runs: list[Run]) -> Any:
    import duckdb

    for run in runs:
        run._parts()
    # What stands for itself in the path of a run is a pattern to the views.
    places = [glob.escape(fspath(run.path)) for run in runs]
    quoted = ", ".join("'" + place.replace("'", "''") + "'" for place in places)
    connection = duckdb.connect()
    connection.execute(f"SET VARIABLE run_dir = [{quoted}]")
    connection.execute(views_sql())
    return connection
