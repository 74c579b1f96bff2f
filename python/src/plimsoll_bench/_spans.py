"""Which stretch of a stage is measured, as docs/measuring.md of plimsoll has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._run import Stage

__all__ = ["Span"]

#: Whose operations: the index of the stage, of the job, and the number of the worker.
WorkerKey = tuple[int, int, int]
#: When the first and the last operation of a worker ended.
Ends = tuple[int, int]


@dataclass(frozen=True)
class Span:
    """The measured span of one row of the report: one job, or the jobs of one group."""

    stage_index: int
    #: The jobs of the row, by their index in the stage.
    job_indices: tuple[int, ...]
    #: ``all-workers``, ``full-too-short``, ``schedule`` or ``from-ramps``, as in the report.
    rule: str
    #: Nanoseconds since the run's epoch.
    began_ns: int
    ended_ns: int

    @property
    def length_s(self) -> float:
        """Return how long it is, in seconds."""
        return (self.ended_ns - self.began_ns) / 1e9


def lay(stages: Iterable[Stage], ends: Mapping[WorkerKey, Ends]) -> list[Span]:
    """Return the span of each row of the measured stages in which a measured operation ended."""
    spans = []
    for stage in stages:
        if not stage.is_measured:
            continue
        for row in stage.rows:
            by_worker: dict[int, Ends] = {}
            for (stage_index, job_index, worker), (first, last) in ends.items():
                if stage_index == stage.index and job_index in row:
                    # With a ramp-down what is under way when the duration ends counts up to there.
                    until = stage.jobs[job_index].measured_until_ns
                    last = _cut(last, None if until is None else stage.started_ns + until)
                    known = by_worker.get(worker, (first, last))
                    by_worker[worker] = (min(first, known[0]), max(last, known[1]))
            if by_worker:
                spans.append(_span(stage, row, list(by_worker.values())))
    return spans


def _span(stage: Stage, row: tuple[int, ...], ends: list[Ends]) -> Span:
    jobs = [stage.jobs[index] for index in row]
    began = stage.started_ns + min(job.measured_from_ns for job in jobs)
    last_done = max(last for _, last in ends)
    # A row ends when it does itself, or was to: another one may go on.
    # Jobs that may be done early have no end, and hide that of no other.
    known = [stage.started_ns + job.ends_ns for job in jobs if job.ends_ns is not None]
    ended = _cut(max([last_done, *known]), stage.ended_ns)
    if any(job.on_files for job in jobs):
        return Span(stage.index, row, "from-ramps", began, max(last_done, began))
    if any(job.loop_model == "open" for job in jobs):
        return Span(stage.index, row, "schedule", began, ended)
    all_ran = max(began, max(first for first, _ in ends))
    first_done = min(last for _, last in ends)
    # A span below a tenth of what there is of the row is too short to stand for it.
    if first_done <= all_ran or first_done - all_ran < (ended - began) // 10:
        return Span(stage.index, row, "full-too-short", began, ended)
    return Span(stage.index, row, "all-workers", all_ran, first_done)


def _cut(moment: int, until: int | None) -> int:
    return moment if until is None else min(moment, until)
