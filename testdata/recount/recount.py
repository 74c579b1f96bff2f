"""Counts what a report says again, from the op log, and tells what differs.

    recount.py FOLDER

Each folder in FOLDER holds `plan.json` (the workload file), `live.json` and `report.json` (what
`plimsoll run --json` and `analyze --json` said) and `run` (the record). It follows
docs/measuring.md, shares no code with the program, and is slow and simple on purpose: every figure
is one plain look at a list of all operations.
"""

from __future__ import annotations

import json
import math
import sys
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

SECOND = 1_000_000_000
#: A percentile is shown from so many samples on.
NEEDED = {"p50": 2, "p90": 10, "p99": 100, "p99_9": 1_000, "p75": 4, "p95": 20, "p99_99": 10_000}
NEEDED |= {"p99_5": 200, "p99_95": 2_000, "p25": 5, "p10": 11, "p5": 21, "p1": 101}
#: Lengths of segments, and how many of them a span is cut into at most.
SEGMENTS, SEGMENTS_MAX = [1, 5, 15, 60, 300, 900, 3_600, 10_800], 400
LATE_NS = 1_000_000
#: How long a cell of the ledger is at least, and how many a stage has at most.
CELL_NS, CELLS_MAX = 1_000_000, 60_000
#: Parts of operations are counted in millionths.
MICRO = 1_000_000


class Op(NamedTuple):
    """An operation, as a row of the op log has it."""

    stage: int
    job: int
    worker: int
    kind: str
    endpoint: str
    objects: int
    bytes: int | None
    delay: int
    start: int
    sent: int | None
    first_byte_to_end: int | None
    end: int
    outcome: str
    measured: bool

    @property
    def due(self) -> int:
        return self.start - self.delay

    @property
    def latency(self) -> int:
        return self.end - self.start + self.delay

    @property
    def ttfb(self) -> int | None:
        if self.first_byte_to_end is None:
            return None
        since = self.start if self.sent is None else self.sent
        return max(0, self.end - self.first_byte_to_end - since)


COLUMNS = """stage, job, worker, kind, endpoint, objects_count, bytes, schedule_delay_ns, start_ns,
             last_byte_sent_ns, first_byte_to_end_ns, end_ns, outcome, measured"""


def nanoseconds(text: str) -> int:
    """Return a duration of a plan: `5s`, `300ms`."""
    return int(text[:-2]) * 1_000_000 if text.endswith("ms") else int(text[:-1]) * SECOND


def ramp_of(plan: dict[str, Any]) -> tuple[int, int]:
    """Return when the ramps of the workers of a job end: the first and the last."""
    delay = [nanoseconds(of) for of in plan.get("start_delay", "0s").split("..")]
    ramp = nanoseconds(plan.get("ramp", "0s"))
    return delay[0] + ramp, delay[-1] + ramp


def part(whole: int, op: Op, start: int, end: int) -> int:
    """Return what of a whole belongs to a stretch by time, rounded down at each of its borders."""
    took = op.end - op.start
    if took == 0:
        return whole if start < op.end <= end else 0
    by = [min(max(at, op.start), op.end) - op.start for at in (start, end)]
    return whole * by[1] // took - whole * by[0] // took


class Differ:
    """Compares what was reported with what was counted."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.told: list[str] = []
        self.compared = 0

    def same(self, figure: str, reported: Any, counted: Any, within: float = 1e-9) -> None:
        self.compared += 1
        if isinstance(reported, int | float) and isinstance(counted, int | float):
            if abs(reported - counted) <= within * max(1.0, abs(counted)):
                return
        elif reported == counted:
            return
        self.told.append(f"{self.place}: {figure}: reported {reported}, counted {counted}")


def times(differ: Differ, name: str, of: dict[str, Any] | None, samples: list[int]) -> None:
    """Hold what is said of samples against them: percentiles, extremes, mean and deviation."""
    if of is None:
        return
    samples = sorted(samples)
    count = len(samples)
    mean = sum(samples) / count if samples else None
    squares = sum((one - mean) ** 2 for one in samples) if samples else 0
    exact = {
        "samples_count": count,
        "min": samples[0] if samples else None,
        "max": samples[-1] if samples else None,
        "mean": mean,
        "std_dev": math.sqrt(squares / (count - 1)) if count > 1 else None,
    }
    for figure in exact.keys() & of.keys():
        # All are whole nanoseconds.
        within = 1.0 / max(1.0, exact[figure] or 1.0)
        differ.same(f"{name}.{figure}", of[figure], exact[figure], within)
    for percentile in NEEDED.keys() & of.keys():
        reported = of[percentile]
        if count < NEEDED[percentile]:
            differ.same(f"{name}.{percentile}", reported, None)
            continue
        share = float(percentile[1:].replace("_", "."))
        ranked = samples[math.ceil(round(share * count / 100, 9)) - 1]
        # The upper end of a bin that is no wider than 1/1,024 of its value.
        right = reported is not None and ranked <= reported <= ranked + ranked // 1_024 + 1
        differ.same(f"{name}.{percentile}", reported, reported if right else ranked)


def failures(ops: list[Op]) -> dict[str, int]:
    found: dict[str, int] = {}
    for op in ops:
        if op.outcome != "ok":
            found[op.outcome] = found.get(op.outcome, 0) + 1
    return found


def count_of(by_endpoint: list[dict[str, int]]) -> int:
    return sum(one["ops_failed_count"] for one in by_endpoint)


def rates(ops: list[Op], start: int, end: int) -> dict[str, float]:
    """Return the rates of the successes among operations over a stretch, by share of time."""
    good = [op for op in ops if op.outcome == "ok" and op.start <= end and op.end >= start]
    seconds = (end - start) / SECOND
    return {
        "ops_per_sec": sum(part(MICRO, op, start, end) for op in good) / MICRO / seconds,
        "objects_per_sec": sum(part(MICRO * op.objects, op, start, end) for op in good)
        / MICRO
        / seconds,
        "bytes_per_sec": sum(part(op.bytes or 0, op, start, end) for op in good) / seconds,
    }


def hold_rates(differ: Differ, name: str, of: dict[str, Any], counted: dict[str, float]) -> None:
    for unit, rate in counted.items():
        differ.same(f"{name}.{unit}", of[unit], rate)


class Row:
    """A job, or a group of jobs, in one stage."""

    def __init__(self, differ: Differ, name: str, reported: dict[str, Any]) -> None:
        self.differ, self.name, self.of = differ, name, reported
        self.jobs: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.ops: list[Op] = []

    def hold(self, stage: dict[str, Any]) -> None:
        """Hold every figure of the row against its operations."""
        differ, name, of = self.differ, self.name, self.of
        began, ended = stage["started_ns"], stage["ended_ns"]
        self.hold_marks(began)
        counted = [op for op in self.ops if op.measured]
        ramp = [op for op in self.ops if not op.measured]
        bad = failures(ramp)
        differ.same(f"{name}.ramp.ops_ok_count", of["ramp"]["ops_ok_count"],
                    len(ramp) - sum(bad.values()))
        differ.same(f"{name}.ramp.failed_by_class", of["ramp"]["failed_by_class"], bad)
        self.hold_span(counted, began, ended)
        start, end = of["span"]["started_ns"], of["span"]["ended_ns"]
        self.figures(f"{name}.total", of["total"], counted, start, end, self.moves(counted))
        started = [op for op in counted if start <= op.start < end]
        kinds = {op.kind for op in counted}
        differ.same(f"{name}.kinds", sorted(kind["kind"] for kind in of["kinds"]), sorted(kinds))
        for kind in of["kinds"]:
            mine = [op for op in counted if op.kind == kind["kind"]]
            label = f"{name}.{kind['kind']}"
            self.figures(label, kind, mine, start, end, self.moves(mine))
            begun = sum(op.kind == kind["kind"] for op in started)
            percent = 100 * begun / len(started) if started else None
            differ.same(f"{label}.mix_percent", kind["mix_percent"], percent)
        bad_count = sum(failures(counted).values())
        rate = bad_count / len(counted) if counted else None
        differ.same(f"{name}.error_rate", of["error_rate"], rate)
        self.schedules(stage)
        self.steps(counted, began)
        self.ledger(counted)

    @staticmethod
    def moves(ops: list[Op]) -> bool:
        return any(op.bytes is not None for op in ops)

    def hold_marks(self, began: int) -> None:
        """Hold the mark of each operation against the ramps of the plan."""
        for number, (plan, _) in enumerate(self.jobs):
            earliest, latest = (began + ramp for ramp in ramp_of(plan))
            lasts = plan["lasts"] if "ramp_down" in plan else None
            for op in self.ops:
                if op.job != plan["number"]:
                    continue
                before, after = op.due < earliest, op.due >= latest
                over = lasts is not None and op.due >= latest + lasts
                goes_on = lasts is not None and op.due >= earliest + lasts
                if before or over:
                    self.differ.same(f"{self.name}[{number}] mark at {op.due}", op.measured, False)
                elif after and not goes_on:
                    self.differ.same(f"{self.name}[{number}] mark at {op.due}", op.measured, True)

    def hold_span(self, ops: list[Op], began: int, ended: int) -> None:
        """Hold the measured span against the first and last ends of the workers."""
        differ, name, span = self.differ, self.name, self.of["span"]
        ends: dict[int, list[int]] = {}
        for op in ops:
            ends.setdefault(op.worker, []).append(op.end)
        differ.same(f"{name}.workers_active_count", self.of["workers_active_count"], len(ends))
        lasts = [max(of_one) for of_one in ends.values()]
        if not any("ramp_down" in plan for plan, _ in self.jobs):
            differ.same(f"{name}.first_done_ns", self.of["first_done_ns"],
                        min(lasts, default=None))
            differ.same(f"{name}.last_done_ns", self.of["last_done_ns"], max(lasts, default=None))
        if span["rule"] == "all-workers":
            differ.same(f"{name}.span.started_ns", span["started_ns"],
                        max(min(of_one) for of_one in ends.values()))
            if not any("ramp_down" in plan for plan, _ in self.jobs):
                differ.same(f"{name}.span.ended_ns", span["ended_ns"], min(lasts))
        within = began <= span["started_ns"] <= span["ended_ns"] <= ended
        differ.same(f"{name}.span lies in its stage", within, True)

    def figures(self, name: str, of: dict[str, Any], ops: list[Op], start: int, end: int,
                by_bytes: bool) -> None:
        """Hold counts, rates, segments and times of some operations."""
        differ = self.differ
        total, bad = of["stage_total"], failures(ops)
        good = [op for op in ops if op.outcome == "ok"]
        differ.same(f"{name}.stage_total.ops_ok_count", total["ops_ok_count"], len(good))
        differ.same(f"{name}.stage_total.failed_by_class", total["failed_by_class"], bad)
        differ.same(f"{name}.stage_total.bytes", total["bytes"], sum(op.bytes or 0 for op in good))
        differ.same(f"{name}.stage_total.objects_count", total["objects_count"],
                    sum(op.objects for op in good))
        differ.same(f"{name}.stage_total.latency_ns_max", total["latency_ns_max"],
                    max((op.latency for op in good), default=None))
        differ.same(f"{name}.stage_total.ops_late_count", total["ops_late_count"],
                    sum(op.delay > LATE_NS for op in ops))
        counts = of["span_counts"]
        inside = [op for op in ops if start < op.end <= end]
        differ.same(f"{name}.span_counts.ops_started_count", counts["ops_started_count"],
                    sum(start <= op.start < end for op in ops))
        differ.same(f"{name}.span_counts.ops_ok_count", counts["ops_ok_count"],
                    sum(op.outcome == "ok" for op in inside))
        differ.same(f"{name}.span_counts.failed_by_class", counts["failed_by_class"],
                    failures(inside))
        if of["rates"] is not None:
            hold_rates(differ, f"{name}.rates", of["rates"], rates(ops, start, end))
        self.segments(name, of["segments"], ops, by_bytes)
        whole = [op for op in good if start <= op.start and op.end <= end]
        times(differ, f"{name}.latency_ns", of["latency_ns"], [op.latency for op in whole])
        times(differ, f"{name}.service_time_ns", of["service_time_ns"],
              [op.end - op.start for op in whole])
        times(differ, f"{name}.schedule_delay_ns", of["schedule_delay_ns"],
              [op.delay for op in whole])
        times(differ, f"{name}.ttfb_ns", of["ttfb_ns"],
              [op.ttfb for op in whole if op.ttfb is not None])

    def segments(self, name: str, of: dict[str, Any] | None, ops: list[Op],
                 by_bytes: bool) -> None:
        """Hold the fastest, the median and the slowest segment."""
        starts, length = self.segment_starts()
        self.differ.same(f"{name}.segment_ns", self.of["segment_ns"], length)
        self.differ.same(f"{name}.segments_count", self.of["segments_count"], len(starts))
        self.differ.same(f"{name}.segments", of is None, not starts)
        if of is None or not starts:
            return
        by = "bytes_per_sec" if by_bytes else "objects_per_sec"
        found = {at: rates(ops, at, at + length) for at in starts}
        order = sorted(found.values(), key=lambda one: one[by])
        places = {"fastest": -1, "median": (len(starts) - 1) // 2, "slowest": 0}
        for which, place in places.items():
            label, at = f"{name}.segments.{which}", of[which]["started_ns"]
            self.differ.same(f"{label}.{by}", of[which][by], order[place][by])
            self.differ.same(f"{label} begins where one does", at in found, True)
            if at in found:
                hold_rates(self.differ, label, of[which], found[at])

    def segment_starts(self) -> tuple[list[int], int]:
        """Return where whole segments begin, and how long they are."""
        start, end = self.of["span"]["started_ns"], self.of["span"]["ended_ns"]
        # Those of files lie on one grid for all rows of a stage.
        first = self.of["stage_started_ns"] if self.of["is_on_files"] else start
        long_enough = (of for of in SEGMENTS if (end - first) // (of * SECOND) <= SEGMENTS_MAX)
        length = next(long_enough) * SECOND
        starts = range(first, end - length + 1, length)
        return [at for at in starts if at >= start], length

    def schedules(self, stage: dict[str, Any]) -> None:
        """Hold what each job was offered, and how much of it was late or never issued."""
        began = stage["started_ns"]
        planned = [(plan, job) for plan, job in self.jobs if job.get("schedule")]
        self.differ.same(f"{self.name}.schedules", len(self.of["schedules"]), len(planned))
        for (plan, job), of in zip(planned, self.of["schedules"], strict=True):
            label = f"{self.name}.schedules[{job['name']}]"
            issued = [op for op in self.ops if op.measured and op.job == plan["number"]]
            skipped = of["skipped_count"]
            self.differ.same(f"{label}.offered_count", of["offered_count"], len(issued) + skipped)
            self.differ.same(f"{label}.late_count", of["late_count"],
                             sum(op.delay > LATE_NS for op in issued))
            if issued:
                self.differ.same(f"{label}.delay_ns_max", of["delay_ns_max"],
                                 max(op.delay for op in issued))
            if of["duration_ns"]:
                self.differ.same(f"{label}.rate_offered_ops_per_sec",
                                 of["rate_offered_ops_per_sec"],
                                 of["offered_count"] * SECOND / of["duration_ns"])
            first = began + of["started_after_ns"]
            last = first + (of["duration_ns"] or 0)
            outside = [op.due for op in issued if not first <= op.due <= last]
            self.differ.same(f"{label}: due outside of its span", outside, [])

    def steps(self, ops: list[Op], began: int) -> None:
        """Hold what came of each step of a rate."""
        for number, of in enumerate(self.of.get("steps") or []):
            label = f"{self.name}.steps[{number}]"
            start = began + of["from_ns"]
            end = start + of["duration_ns"]
            due = [op for op in ops if start <= op.due < end]
            # `50/s for 1s, 200/s for 1s, 100/s`, of which a ramp may take the first.
            rate = [50, 200, 100][min(2, of["from_ns"] // SECOND)]
            self.differ.same(f"{label}.offered_ops_per_sec", of["offered_ops_per_sec"], rate)
            self.differ.same(f"{label}.ops_issued_count", of["ops_issued_count"], len(due))
            self.differ.same(f"{label}.ops_late_count", of["ops_late_count"],
                             sum(op.delay > LATE_NS for op in due))
            self.differ.same(f"{label}.ops_failed_count", of["ops_failed_count"],
                             sum(op.outcome != "ok" for op in due))
            good = sum(op.outcome == "ok" and start < op.end <= end for op in ops)
            self.differ.same(f"{label}.achieved_ops_per_sec", of["achieved_ops_per_sec"],
                             good * SECOND / (end - start))
            times(self.differ, label, {key[len("latency_ns_"):]: value for key, value in of.items()
                                       if key.startswith("latency_ns_")},
                  [op.latency for op in due if op.outcome == "ok"])

    def ledger(self, ops: list[Op]) -> None:
        """Hold failures, gaps and outages."""
        of = self.of["ledger"]
        if of is None:
            return
        differ, name = self.differ, f"{self.name}.ledger"
        bad = sorted((op for op in ops if op.outcome != "ok"), key=lambda op: op.end)
        for one in of["failures_by_class"]:
            mine = [op.end for op in bad if op.outcome == one["class"]]
            told = [one["first_ns"], one["last_ns"], count_of(one["by_endpoint"])]
            counted = [mine[0], mine[-1], len(mine)] if mine else None
            differ.same(f"{name}.{one['class']}", told, counted)
        classes = {one["class"] for one in of["failures_by_class"]}
        differ.same(f"{name}.failures_by_class", sorted(classes), sorted(failures(bad)))
        good = sorted(op.end for op in ops if op.outcome == "ok")
        self.longest_gap(f"{name}.gap_longest", ops, good)
        for number, outage in enumerate(of["outages"]):
            label = f"{name}.outages[{number}]"
            last, then = outage["last_success_ns"], outage["next_success_ns"]
            if outage["endpoint_id"] is not None or outage["client_id"] is not None:
                continue
            between = [end for end in good if (last or 0) < end < (then or good[-1] + 1)]
            differ.same(f"{label}: successes in it", between, [])
            if last is not None and then is not None:
                differ.same(f"{label}.gap_ns", outage["gap_ns"], then - last)
                failed = [op for op in bad if last <= op.end <= then]
                differ.same(f"{label}.failed_by_class", outage["failed_by_class"],
                            failures(failed))


    def longest_gap(self, name: str, ops: list[Op], good: list[int]) -> None:
        """Hold the longest time without a success while the row asked for anything."""
        of = self.of["ledger"]["gap_longest"]
        until = max(op.start for op in ops)
        began = self.of["stage_started_ns"]
        if not self.of["schedules"]:
            until = max(until, self.of["first_done_ns"])
        elif all("open" in plan.get("pacing", {}) or plan["lasts"] for plan, _ in self.jobs):
            ends = [began + of["started_after_ns"] + of["duration_ns"]
                    for of in self.of["schedules"]]
            until = max(ends + [began + ramp_of(plan)[-1] + plan["lasts"] for plan, _ in self.jobs
                                if "open" not in plan.get("pacing", {})])
        ends = sorted({min(end, until) for end in good})
        longest = max((then - end for end, then in zip(ends, ends[1:], strict=False)), default=0)
        # Shorter ones may lie in one cell.
        cell = max(CELL_NS, math.ceil((self.of["stage_ended_ns"] - began) / CELLS_MAX))
        if longest > 2 * cell:
            self.differ.same(f"{name}.length_ns", of and of["length_ns"], longest)


def recount(place: Path) -> tuple[list[str], int]:
    """Return what differs between a report and its op log, and how much was compared."""
    differ = Differ(place)
    manifest = json.loads((place / "run" / "run.json").read_text())
    report = json.loads((place / "report.json").read_text())
    parts = str(place / "run" / "ops" / "*.parquet")
    ops = [Op(*row) for row in duckdb.sql(f"SELECT {COLUMNS} FROM '{parts}'").fetchall()]
    live = json.loads((place / "live.json").read_text())
    differ.same("report of the run and of its record", live["stages"] == report["stages"], True)
    planned = flat(json.loads((place / "plan.json").read_text())["stages"])
    stages = [stage for stage in manifest["stages"] if stage["kind"] != "cleanup"]
    differ.same("stages", len(stages), len(planned))
    shown = {of["started_after_ns"]: of for of in report["stages"]}
    for stage, plan in zip(stages, planned, strict=True):
        of = shown.get(stage["started_ns"] - stages[0]["started_ns"])
        if of is None:
            differ.same(f"{stage['name']} is left out", bool(plan.get("prepares")), True)
            continue
        rows = rows_of(stage, plan)
        differ.same(f"{stage['name']}.rows", len(of["rows"]), len(rows))
        for jobs, reported in zip(rows, of["rows"], strict=False):
            name = f"stage {stage['index']} {stage['name']}, {reported['name']}"
            row = Row(differ, name, reported)
            row.jobs = jobs
            numbers = {plan["number"] for plan, _ in jobs}
            row.ops = [op for op in ops if op.stage == stage["index"] and op.job in numbers]
            row.hold(stage)
    return differ.told, differ.compared


def flat(stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the stages of a plan with repeated ones in full."""
    found = []
    for stage in stages:
        repeat, jobs = stage.get("repeat"), stage.get("jobs")
        steps = jobs and jobs[0].get("pacing", {}).get("open", {}).get("steps", [])
        if repeat:
            found += flat(repeat["stages"]) * repeat["times"]
        elif steps:
            # Each step is a stage.
            found += [stage | {"duration": lasts} for step in steps for lasts in step.values()]
        else:
            found.append(stage)
    return found


def rows_of(stage: dict[str, Any], plan: dict[str, Any]) -> list[list[tuple[dict, dict]]]:
    """Return the jobs of each row of a stage: as planned and as recorded."""
    rows: dict[Any, list[tuple[dict, dict]]] = {}
    for number, (planned, job) in enumerate(zip(plan["jobs"], stage["jobs"], strict=True)):
        asked = [of["duration"] for of in (planned, plan) if "duration" in of]
        lasts = min(map(nanoseconds, asked)) if asked else None
        group = planned.get("group")
        key = ("job", number) if group is None else ("group", group)
        rows.setdefault(key, []).append((planned | {"number": number, "lasts": lasts}, job))
    return list(rows.values())


def main() -> int:
    """Count all places again; the exit code is 1 where a figure differs."""
    places = sorted(Path(sys.argv[1]).iterdir())
    with Pool() as pool:
        done = pool.map(recount, places)
    told = [line for lines, _ in done for line in lines]
    compared = sum(count for _, count in done)
    print("\n".join([*told[:100], f"{len(done)} runs, {compared} figures, {len(told)} differ"]))
    return 1 if told or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
