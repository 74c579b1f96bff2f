"""Counts what a report says again, from the op log and the plan, and tells what differs.

    recount.py FOLDER

Each folder in FOLDER is one of `plans.py`. This follows docs/measuring.md and docs/outages.md,
shares no code with the program, and is slow and simple on purpose: a figure is one plain look at a
list of all operations. Of the record's manifest it takes only facts: when stages began and ended,
which workers each job had, and how many operations were due and never issued. `elsewhere.py` holds
the other forms of a report against the report.
"""

from __future__ import annotations

import json
import math
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, namedtuple
from multiprocessing import Pool
from os import sched_getaffinity
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import duckdb
import elsewhere

Json = dict[str, Any]
SECOND, MICRO, FOREVER = 1_000_000_000, 1_000_000, 1 << 62
LATE_NS, OUTAGE_NS, UNITS = 1_000_000, 500_000_000, {"ms": 1_000_000, "ns": 1, "s": SECOND}
#: A percentile is shown from so many samples on.
NEEDED = {"p50": 2, "p90": 10, "p99": 100, "p99_9": 1_000, "p75": 4, "p95": 20, "p99_99": 10_000}
NEEDED |= {"p99_5": 200, "p99_95": 2_000, "p25": 5, "p10": 11, "p5": 21, "p1": 101}
#: Lengths of segments, and how many of them a span is cut into at most.
SEGMENTS, SEGMENTS_MAX = [1, 5, 15, 60, 300, 900, 3_600, 10_800], 400

#: An operation as the op log has it; `due` is its intended start.
COLUMNS = """stage, job, worker, kind, outcome, outcome = 'ok' AS ok, measured, bytes,
    objects_count AS objects, {'owner': object_owner, 'number': object_number}::VARCHAR AS object,
    start_ns - schedule_delay_ns AS due, start_ns AS start, end_ns AS ended,
    schedule_delay_ns AS delay, end_ns - start_ns + schedule_delay_ns AS latency,
    end_ns - first_byte_to_end_ns - coalesce(last_byte_sent_ns, start_ns) AS ttfb"""
Op = namedtuple("Op", """stage job worker kind outcome ok measured bytes objects object due start
    end delay latency ttfb""")
#: A time without a success, between two of them or at an end of the row; `after` ended it.
Gap = namedtuple("Gap", "at to before after waited waited_most failed")


class Differ:
    """Compares what was reported with what was counted."""

    def __init__(self, place: Path) -> None:
        self.place, self.told, self.compared = place, list[str](), 0

    def one(self, figure: str, reported: Any, counted: Any, within: float = 1e-9) -> None:
        self.compared += 1
        if reported == counted:
            return
        # Whole numbers are exact.
        if {type(reported), type(counted)} in ({float}, {int, float}):
            if abs(reported - counted) <= within * max(1.0, abs(counted)):
                return
        self.told.append(f"{self.place}: {figure}: reported {reported}, counted {counted}")

    def each(self, name: str, reported: Json | None, counted: Json | None) -> None:
        """Hold every counted figure against the reported one of its name."""
        if reported is None or counted is None:
            return self.one(name, reported, counted)
        for figure, value in counted.items():
            self.one(f"{name}.{figure}", reported[figure], value)
        return None

    def times(self, name: str, of: Json | None, taken: list[int]) -> None:
        """Hold what is said of samples: percentiles, extremes, mean and deviation."""
        samples, count, of = sorted(taken), len(taken), of or {}
        exact = {"samples_count": count, "min": min(taken, default=None),
                 "max": max(taken, default=None), "mean": mean(taken) if taken else None,
                 "std_dev": stdev(taken) if count > 1 else None}
        for key in exact.keys() & of.keys():
            # All are whole nanoseconds.
            self.one(f"{name}.{key}", of[key], exact[key], 1 / max(1, exact[key] or 1))
        found = {key: ranked(samples, float(key[1:].replace("_", ".")))
                 for key, needed in NEEDED.items() if count >= needed}
        if count >= 563:
            spread = 1.96 * math.sqrt(0.0099 * count)
            found["p99_low"] = samples[math.floor(0.99 * count - spread) - 1]
            found["p99_high"] = samples[math.ceil(0.99 * count + spread)]
        for key in of.keys() & {*NEEDED, "p99_low", "p99_high"}:
            # The upper end of a bin that is no wider than 1/1,024 of its value.
            value, told = found.get(key), of[key]
            within = None not in (value, told) and value <= told <= value + value // 1_024 + 1
            self.one(f"{name}.{key}", told, told if within else value)


def ns(text: str) -> int:
    """Return a duration of a plan: `5s`, `300ms`."""
    unit = next(unit for unit in UNITS if text.endswith(unit))
    return int(text.removesuffix(unit)) * UNITS[unit]


def due_by(rate: str, at_ns: float) -> float:
    """Return how many operations a rate wants within a time: the area under it."""
    total, at, last = 0.0, at_ns / SECOND, 0.0
    for piece in rate.replace("/s", "").split(", "):
        speeds, _, lasts = piece.replace(" over ", " for ").partition(" for ")
        first, last = (float(of) for of in (speeds.split("..") * 2)[:2])
        length = ns(lasts) / SECOND if lasts else math.inf
        spent = min(at, length)
        total += first * spent + (last - first) * spent * spent / 2 / length
        at -= spent
    return total + last * at


def ranked(samples: list[int], percent: float) -> int:
    """Return a percentile of sorted samples by the nearest rank."""
    return samples[math.ceil(round(percent * len(samples) / 100, 9)) - 1]


def part(whole: int, op: Op, start: int, end: int) -> int:
    """Return what of a whole belongs to a stretch by time, rounded down at each of its borders."""
    took = op.end - op.start
    if took == 0:
        return whole if start < op.end <= end else 0
    by = [min(max(at, op.start), op.end) - op.start for at in (start, end)]
    return whole * by[1] // took - whole * by[0] // took


def rates(ops: list[Op], start: int, end: int) -> Json | None:
    """Return the rates of the successes among operations over a stretch, by share of time."""
    good = [op for op in ops if op.ok and op.start <= end and op.end >= start]
    sums = {"ops_per_sec": sum(part(MICRO, op, start, end) for op in good) / MICRO,
            "objects_per_sec": sum(part(MICRO * op.objects, op, start, end) for op in good) / MICRO,
            "bytes_per_sec": sum(part(op.bytes or 0, op, start, end) for op in good)}
    return {key: of * SECOND / (end - start) for key, of in sums.items()} if end > start else None


def failures(ops: list[Op]) -> Json:
    found = Counter(op.outcome for op in ops if not op.ok)
    return {"ops_failed_count": found.total(), "failed_by_class": dict(found)}


class Job:
    """A job of a stage, as planned."""

    def __init__(self, number: int, plan: Json, stage: Json) -> None:
        self.number, self.plan, self.name = number, plan, plan["name"]
        loop = plan.get("pacing", {}).get("open", {})
        self.rate, self.is_poisson = loop.get("rate"), loop.get("arrivals") == "poisson"
        self.replays = "replay" in plan["work"] and not plan["work"]["replay"].get("closed")
        self.is_open = bool(self.rate or self.replays)
        asked = [ns(of["duration"]) for of in (plan, stage) if "duration" in of]
        self.lasts = min(asked, default=0)
        delays = plan.get("start_delay", "0s").split("..")
        self.delay, self.delay_max = ns(delays[0]), ns(delays[-1])
        self.ramp, self.goes_on = ns(plan.get("ramp", "0s")), "ramp_down" in plan
        limits = {"ops", "bytes", "until"} & (plan.keys() | stage.keys())
        self.only_time_ends_it = self.lasts and not limits and "batch" not in str(plan)


class Row:
    """A job, or a group of jobs, in one stage."""

    def __init__(self, differ: Differ, name: str, of: Json, jobs: list[Job], ops: list[Op]) -> None:
        self.differ, self.name, self.of, self.jobs = differ, name, of, jobs
        self.all, self.ops = ops, [op for op in ops if op.measured]
        self.is_open = any(job.is_open for job in jobs)

    def lay(self, clients: list[Json], bounds: tuple[int, int], on_files: bool) -> None:
        """Lay out the workers and the measured span by section 3, and hold them."""
        differ, (self.began, self.ended), self.on_files = self.differ, bounds, on_files
        self.clients, ends, idle = clients, defaultdict(list), False
        self.last_began = max(client["started_ns"] for client in clients)
        for op in self.ops:
            ends[op.worker].append(op.end)
        #: From when to when what a worker does counts; without an end where it does not go on.
        counts: dict[int, tuple[int, int]] = {}
        for client, job in ((client, job) for client in clients for job in self.jobs):
            for worker in client["jobs"][job.number]:
                starts, delay = [op.start for op in self.all if op.worker == worker], job.delay
                if delay < job.delay_max and starts:
                    # What the seed drew shows in when a worker begins.
                    delay = min(starts) - client["started_ns"]
                    differ.one(f"{self.name}: delay", delay <= job.delay_max, True)
                elif delay < job.delay_max:
                    # It was still to begin when the stage ended, or waited for its first turn.
                    delay, idle = self.ended, True
                begins = client["started_ns"] + delay + job.ramp
                counts[worker] = begins, begins + job.lasts if job.goes_on else FOREVER
        wrong = [op for op in self.all
                 if op.measured != (counts[op.worker][0] <= op.due < counts[op.worker][1])]
        differ.one(f"{self.name}: marks `measured` that are wrong", wrong[:3], [])
        self.counts = counts
        self.own = max(self.began, min(begins for begins, _ in counts.values()))
        self.lasts = {worker: min(max(of), counts[worker][1]) for worker, of in ends.items()}
        took = [end - counts[worker][0] for worker, end in self.lasts.items()]
        differ.each(self.name, self.of, {
            "workers_count": len(counts), "workers_active_count": len(ends),
            "first_done_ns": min(self.lasts.values(), default=None),
            "last_done_ns": max(self.lasts.values(), default=None),
            "worker_took_ns_sum": sum(took), "worker_took_ns_max": max(took, default=None)})
        span = self.measured_span([min(of) for of in ends.values()])
        if ends or not idle:
            differ.each(f"{self.name}.span", self.of["span"], span)
        # Where it differs, that is told once.
        self.start, self.end = self.of["span"]["started_ns"], self.of["span"]["ended_ns"]

    def schedule_ends(self) -> list[int]:
        """Return when the schedules of the row ended; `schedules` holds what is said of that."""
        return [self.last_began + of["started_after_ns"] + of["duration_ns"]
                for of in self.of["schedules"]]

    def durations_end(self) -> list[int]:
        """Return when the closed loops of the row end that only time ends."""
        return [self.last_began + job.delay_max + job.ramp + job.lasts
                for job in self.jobs if job.only_time_ends_it and not job.is_open]

    def measured_span(self, firsts: list[int]) -> Json:
        # A row may have ended within its ramp.
        own, lasts = min(self.own, self.ended), self.lasts.values()
        last = max(lasts, default=own)
        until = max([last, *self.durations_end(), *self.schedule_ends()])
        whole = own, max(own, min(until, self.ended))
        ran, done = max([own, *firsts]), min(lasts, default=own)
        if self.on_files:
            span, rule = (own, last), "from-ramps"
        elif self.is_open:
            span, rule = whole, "schedule"
        elif done <= ran or done - ran < (whole[1] - own) // 10:
            span, rule = whole, "full-too-short"
        else:
            span, rule = (ran, done), "all-workers"
        return {"started_ns": span[0], "ended_ns": span[1], "rule": rule}

    def hold(self) -> None:
        """Hold every figure of the row against its operations."""
        differ, name, of, ops = self.differ, self.name, self.of, self.ops
        ramp = [op for op in self.all if not op.measured]
        good = sum(op.ok for op in ramp)
        differ.each(f"{name}.ramp", of["ramp"], {"ops_ok_count": good} | failures(ramp))
        self.figures(f"{name}.total", of["total"], ops)
        kinds = sorted({op.kind for op in ops})
        differ.one(f"{name}.kinds", sorted(kind["kind"] for kind in of["kinds"]), kinds)
        started = Counter(op.kind for op in ops if self.start <= op.start < self.end)
        for kind in of["kinds"]:
            label = f"{name}.{kind['kind']}"
            self.figures(label, kind, [op for op in ops if op.kind == kind["kind"]])
            percent = 100 * started[kind["kind"]] / started.total() if started else None
            differ.one(f"{label}.mix_percent", kind["mix_percent"], percent)
        bad = failures(ops)["ops_failed_count"]
        differ.one(f"{name}.error_rate", of["error_rate"], bad / len(ops) if ops else None)

    def figures(self, name: str, of: Json, ops: list[Op]) -> None:
        """Hold counts, rates, segments and times of some operations."""
        differ, start, end = self.differ, self.start, self.end
        good, inside = [op for op in ops if op.ok], [op for op in ops if start < op.end <= end]
        differ.each(f"{name}.stage_total", of["stage_total"], failures(ops) | {
            "ops_ok_count": len(good), "bytes": sum(op.bytes or 0 for op in good),
            "objects_count": sum(op.objects for op in good),
            "latency_ns_max": max((op.latency for op in good), default=None),
            "ops_late_count": sum(op.delay > LATE_NS for op in ops)})
        differ.each(f"{name}.span_counts", of["span_counts"], failures(inside) | {
            "ops_started_count": sum(start <= op.start < end for op in ops),
            "ops_ok_count": sum(op.ok for op in inside)})
        differ.each(f"{name}.rates", of["rates"], rates(ops, start, end))
        self.segments(name, of["segments"], ops)
        whole = [op for op in good if start <= op.start and op.end <= end]
        differ.times(f"{name}.latency_ns", of["latency_ns"], [op.latency for op in whole])
        differ.times(f"{name}.service_time_ns", of["service_time_ns"] or of["latency_ns"],
                     [op.end - op.start for op in whole])
        differ.times(f"{name}.delay", of["schedule_delay_ns"], [op.delay for op in whole])
        differ.times(f"{name}.ttfb_ns", of["ttfb_ns"],
                     [op.ttfb for op in whole if op.ttfb is not None])
        for which, at in (("first_done", min), ("last_done", max)):
            if self.on_files and of[which]:
                until = at(self.lasts.values())
                done = [op for op in good if op.end <= until]
                rate = len(done) * SECOND / (until - start) if until > start else None
                differ.each(f"{name}.{which}", of[which], {
                    "after_ns": until - self.began, "ops_ok_count": len(done),
                    "bytes": sum(op.bytes or 0 for op in done), "ops_per_sec": rate})

    def segments(self, name: str, of: Any, ops: list[Op]) -> None:
        """Hold the fastest, the median and the slowest segment."""
        # Those of files lie on one grid for all rows of a stage.
        first = self.began if self.on_files else self.start
        length = SECOND * next(of for of in SEGMENTS
                               if (self.end - first) // (of * SECOND) <= SEGMENTS_MAX)
        starts = [at for at in range(first, self.end - length + 1, length) if at >= self.start]
        self.differ.each(name, self.of, {"segment_ns": length, "segments_count": len(starts)})
        self.differ.one(f"{name}.segments", of is None, not starts)
        if of is None or not starts:
            return
        moves = any(op.bytes is not None for op in ops)
        by = "bytes_per_sec" if moves else "objects_per_sec"
        found = {at: rates(ops, at, at + length) for at in starts}
        order = sorted(found.values(), key=lambda one: one[by])
        for which, place in (("fastest", -1), ("median", (len(starts) - 1) // 2), ("slowest", 0)):
            label, at = f"{name}.segments.{which}", of[which]["started_ns"]
            self.differ.one(f"{label}.{by}", of[which][by], order[place][by])
            self.differ.each(label, of[which], found.get(at))

    def schedules(self, skipped: dict[str, int]) -> None:
        """Hold what each job was offered and over which time, and what of it was late."""
        jobs, one = [job for job in self.jobs if job.is_open], self.differ.one
        one(f"{self.name}.schedules", len(self.of["schedules"]), len(jobs))
        for job, of in zip(jobs, self.of["schedules"], strict=True):
            label = f"{self.name}.schedules[{job.name}]"
            issued = [op for op in self.ops if op.job == job.number]
            # Whether what ends just then was waited for only the program knows.
            waited = held(issued, 0) if job.replays else [False] * len(issued)
            most = sum(held(issued, 1)) if job.replays else 0
            one(f"{label}: held", sum(waited) <= of["held_count"] <= most, True)
            delays = [op.delay for op, was in zip(issued, waited, strict=True) if not was]
            bad, lasted = of["late_count"] + of["skipped_count"], of["duration_ns"]
            rate = of["offered_count"] * SECOND / lasted if lasted else None
            self.differ.each(label, of, {
                "started_after_ns": job.delay + job.ramp,
                "offered_count": len(issued) + skipped[job.name],
                "late_count": sum(delay > LATE_NS for delay in delays),
                "delay_ns_max": max(delays, default=0),
                "kept": bad <= of["offered_count"] / 100, "rate_offered_ops_per_sec": rate})
            last = max((op.due for op in issued), default=self.began) - self.began
            if job.replays or job.only_time_ends_it:
                one(f"{label}.duration_ns", lasted, job.lasts or last)
            streams = sum(len(client["jobs"][job.number]) for client in self.clients)
            if job.rate and job.only_time_ends_it:
                wanted = due_by(job.rate, job.ramp + lasted) - due_by(job.rate, job.ramp)
                wanted *= len(self.clients)
                spread = streams + 1 + (6 * math.sqrt(wanted) if job.is_poisson else 0)
                near = abs(of["offered_count"] - wanted) <= spread
                one(f"{label}: offered what the rate wants, {wanted}", near, True)
            elif job.rate and len(self.clients) == 1:
                # Of each stream one more was due at most, which Poisson's law draws.
                more = due_by(job.rate, job.ramp + lasted)
                more -= due_by(job.rate, max(job.ramp, last - job.delay))
                most = skipped[job.name] + 1 + streams * (25 if job.is_poisson else 1)
                one(f"{label}: ends with what was due", -1e-6 < more <= most, True)

    def steps(self) -> None:
        """Hold what came of each step of a rate."""
        for number, of in enumerate(self.of.get("steps") or []):
            label, rate = f"{self.name}.steps[{number}]", self.jobs[0].rate
            start, end = of["from_ns"], of["from_ns"] + of["duration_ns"]
            due = [op for op in self.ops if start <= op.due - self.began < end]
            good = sum(op.ok and start < op.end - self.began <= end for op in self.ops)
            each = SECOND / (end - start)
            self.differ.each(label, of, {
                "offered_ops_per_sec": (due_by(rate, end) - due_by(rate, start)) * each,
                "achieved_ops_per_sec": good * each, "ops_issued_count": len(due),
                "ops_late_count": sum(op.delay > LATE_NS for op in due),
                "ops_failed_count": failures(due)["ops_failed_count"]})
            told = {key.removeprefix("latency_ns_"): value for key, value in of.items()}
            self.differ.times(label, told, [op.latency for op in due if op.ok])

    def ledger(self, rows_count: int) -> None:
        """Hold failures, gaps and outages, those that are told and those that are not."""
        differ, of, name = self.differ, self.of["ledger"], f"{self.name}.ledger"
        ops = [op for op in self.ops if op.end >= self.own]
        if of is None or not ops:
            return differ.one(name, of is None, not ops)
        bad = sorted((op for op in ops if not op.ok), key=lambda op: op.end)
        classes = {one["class"]: one for one in of["failures_by_class"]}
        for one in classes.keys() | {op.outcome for op in bad}:
            mine = [op.end for op in bad if op.outcome == one]
            told = {"first_ns": mine[0], "last_ns": mine[-1]} if mine else None
            differ.each(f"{name}.{one}", classes.get(one), told)
        # When the row stopped asking.
        until = max(min(op.start, self.counts[op.worker][1]) for op in ops)
        ends = self.schedule_ends() + self.durations_end() if self.is_open else []
        until = max(until, *(ends or [min(self.lasts.values())]))
        until = max(self.own, min(until, self.ended))
        cell = max(1_000_000, math.ceil((until - self.own) / max(65_536 // rows_count, 1_024)))
        gaps = gaps_of(ops, self.own, until, cell)
        longest = max((gap.to - gap.at for gap in gaps if gap.before and gap.after), default=0)
        if longest > cell:
            differ.one(f"{name}.gap_longest", (of["gap_longest"] or {}).get("length_ns"), longest)
        outages = {one["last_success_ns"] or self.own: one for one in of["outages"]
                   if one["endpoint_id"] is None and one["client_id"] is None}
        differ.one(f"{name}.outages_count", of["outages_count"], len(of["outages"]))
        differ.one(f"{name}.away_ns", of["away_ns"], sum(one["gap_ns"] for one in outages.values()))
        for gap in gaps:
            label, outage = f"{name}: outage at {gap.at}", outages.get(gap.at)
            if is_clear_outage(gap, gaps, ops, until):
                differ.one(label, outage is not None, True)
            if outage is None or gap.to - gap.at < OUTAGE_NS:
                continue
            del outages[gap.at]
            differ.one(f"{label}: waited for half a second", gap.waited_most >= OUTAGE_NS, True)
            failed = [op for op in bad if gap.at <= min(op.end, until) <= gap.to]
            differ.each(label, outage, failures(failed) | {
                "last_success_ns": gap.at if gap.before else None,
                "next_success_ns": gap.to if gap.after else None,
                "first_failure_ns": failed[0].end if failed else None, "gap_ns": gap.to - gap.at})
            # Of the ten seconds before it, or since a gap that was as long, in whole cells.
            rate, at = outage["rate_before_ops_per_sec"], max(self.own, gap.at - 10 * SECOND)
            begins = [max(at, one.to) for one in gaps
                      if one.to <= gap.at and one.waited_most >= OUTAGE_NS]
            found = []
            for begun in [at, *begins]:
                least = sum(op.ok and begun + cell < op.end <= gap.at for op in ops)
                most = sum(op.ok and begun <= op.end <= gap.at + cell for op in ops)
                lasted, ops_before = gap.at - begun, (rate or 0) * (gap.at - begun) / SECOND
                few = lasted < SECOND + cell or least < 20
                most += 1e-6 + (rate or 0) * cell / SECOND
                near = rate is not None and least <= ops_before + 1e-6 <= most
                found.append(near or rate is None and few)
            differ.one(f"{label}.rate_before {rate}", any(found), True)
        differ.one(f"{name}: outages without a gap", list(outages), [])
        return None


def gaps_of(ops: list[Op], at: int, until: int, cell: int) -> list[Gap]:
    """Return the times without a success; what ends after nothing is asked for ends then."""
    clip = {op: max(at, min(op.end, until)) for op in ops}
    good, bad = (sorted((op for op in ops if op.ok == ok), key=clip.get) for ok in (True, False))
    ends, failed, found = [clip[op] for op in good], [clip[op] for op in bad], []
    for before, after in zip([None, *good], [*good, None], strict=True):
        begun, to = clip[before] if before else at, clip[after] if after else until
        ended_it = good[bisect_left(ends, to):bisect_left(ends, to + cell)]
        # What failed within a cell of an end of the gap may count or not.
        least = bad[bisect_left(failed, begun + cell):bisect_right(failed, to)]
        most = bad[bisect_left(failed, begun):bisect_left(failed, to + cell)]
        waited = [max(0, to - max(begun, min((op.due for op in own + ended_it), default=to)))
                  for own in (least, most)]
        if after or most:
            found.append(Gap(begun, to, before, after, *waited, bool(least)))
    return found


def is_clear_outage(gap: Gap, gaps: list[Gap], ops: list[Op], until: int) -> bool:
    """Return whether a gap is an outage by docs/outages.md, far from all of its limits."""
    if gap.waited < 1.5 * OUTAGE_NS or len(gaps) < 12:
        return False
    others = sorted(of.waited_most for of in gaps if of is not gap)
    if others[-5] * 2 > gap.waited:
        return False
    middle = max(1, mean(others))
    usual = max(middle, ranked(others, 99))
    # A wide law of gaps has long ones at times.
    if gap.waited < 10 * usual or gap.waited < middle * (usual / middle) ** 3:
        return False
    if gap.failed or not (gap.before and gap.after):
        return gap.failed
    # If nothing failed, several waited far longer than the like of them, and no other half as long.
    half = gap.waited // 2
    waiting = {op for op in ops if op.start <= gap.to - half and op.end >= gap.to}
    slow = any(op.end - op.start >= half for op in ops if op not in waiting)
    # What ends after the row stopped asking counts as ending then.
    ended = [op for op in ops if op.ok and min(op.end, until) == gap.to]
    for kind, size in {(op.kind, (op.bytes or 0).bit_length()) for op in ended}:
        like = sorted(op.end - op.start for op in ops
                      if op.ok and op.kind == kind and (op.bytes or 0).bit_length() == size)
        slow = slow or half <= max(5 * ranked(like, 50), ranked(like, 95))
    return len(waiting) >= 4 and not slow


def held(ops: list[Op], tie: int) -> list[bool]:
    """Return which operations of a replay waited for an earlier one on the same object."""
    of_object = defaultdict(list)
    for op in ops:
        of_object[op.object].append(op)
    return [any(of.start < op.start and of.due <= op.due < of.end + tie
                and "PUT" in (op.kind, of.kind) for of in of_object[op.object]) for op in ops]


def surely(tenths: list[float]) -> float:
    """Return where the 95 % interval of their mean begins (Student's t, nine degrees)."""
    return mean(tenths) - 2.262 * stdev(tenths) / math.sqrt(10)


def hold_line(differ: Differ, of: Json, probes: list[tuple[Json, list[Op]]]) -> None:
    """Hold what came of each probe of a search, its capacity and its knee."""
    surest, power = [], []
    for probe, (stage, ops) in zip(of["probes"], probes, strict=True):
        name, began, lasts = f"probe {stage['name']}", stage["started_ns"], probe["duration_ns"]
        # The first tenth does not count.
        first, length = began + lasts // 10, lasts - lasts // 10
        due = [op for op in ops if first <= op.due < began + lasts]
        good = [op.end - first for op in ops if op.ok and first <= op.end < began + lasts]
        taken, achieved = [op.latency for op in due if op.ok], len(good) * SECOND / length
        skipped = stage["jobs"][0]["schedule"]["skipped_count"]
        differ.one(f"{name}.due", 0 <= probe["due_count"] - len(due) <= skipped, True)
        bad = failures(due)["ops_failed_count"]
        differ.each(name, probe, {"ops_failed_count": bad, "achieved_ops_per_sec": achieved})
        told = {key.removeprefix("latency_ns_"): value for key, value in probe.items()}
        differ.times(name, told, taken)
        parts = Counter(at * 10 // length for at in good)
        each = [parts[number] * 10 * SECOND / length for number in range(10)]
        surest.append((surely(each), achieved))
        waits = [[op.latency for op in due if op.ok and (op.due - first) * 10 // length == number]
                 for number in range(10)]
        if probe["role"] != "descent" and all(waits) and achieved:
            rate, wait = mean(each), mean(taken)
            powers = [rate / wait * (1 + one / rate - mean(own) / wait)
                      for one, own in zip(each, waits, strict=True)]
            power.append((surely(powers), probe["offered_ops_per_sec"]))
    differ.one("capacity", of["capacity_ops_per_sec"], max(surest)[1])
    if of["knee"]:
        differ.one("knee", of["knee"]["ops_per_sec"], max(power)[1])


def draws(differ: Differ, name: str, jobs: list[Job], ops: list[Op], stage: Json) -> None:
    """Hold arrivals and block sizes in the log against the plan, and answers against requests."""
    seen: dict[int, int] = {}
    for job in jobs:
        label, own = f"{name}, {job.name}", stage["jobs"][job.number]
        mine = sorted((op for op in ops if op.job == job.number), key=lambda op: op.due)
        if job.is_poisson:
            same = sum(seen.get(op.due, job.number) != job.number for op in mine)
            differ.one(f"{label}: arrivals of another job", same, 0)
            seen |= {op.due: job.number for op in mine}
        elif job.rate:
            # Of W workers number w has arrivals w, w + W, ... of the rate.
            nexts, off = {own["worker_first"] + at: at for at in range(own["workers_count"])}, 0
            for op in mine:
                at = due_by(job.rate, op.due - stage["started_ns"] - job.delay)
                off += abs(at - nexts[op.worker]) > 1e-4
                nexts[op.worker] += own["workers_count"]
            differ.one(f"{label}: arrivals off the schedule", off, 0)
        block = job.plan["work"].get("blocks", {}).get("read", {}).get("block")
        if isinstance(block, dict):
            low, high = (int(of.removesuffix("KiB")) for of in block["range"].split(".."))
            found = Counter((op.bytes or 0) // 1_024 for op in mine if op.kind == "READ" and op.ok)
            wanted = found.total() * low / high
            even = all(abs(found[size] - wanted) <= 6 * math.sqrt(wanted)
                       for size in range(low, high + 1, low))
            differ.one(f"{label}: even sizes of {dict(found)}", even, True)
    early = [op for op in ops if op.ok and op.ttfb is not None and op.ttfb < (op.end > op.start)]
    differ.one(f"{name}: answers before their requests", early[:3], [])


def clients_of(manifest: Json, index: int) -> list[Json]:
    """Return when each client was at a stage, and its workers of each job."""
    def laid(first: int, stage: Json) -> Json:
        firsts = [(first + job["worker_first"], job["workers_count"]) for job in stage["jobs"]]
        return stage | {"jobs": [range(at, at + count) for at, count in firsts]}
    if not manifest["merged"]:
        return [laid(0, manifest["stages"][index])]
    return [laid(client["worker_index_first"], stage) for client in manifest["merged"]
            for stage in client["stages"] if stage["index"] == index]


def bounds_of(clients: list[Json], is_whole: bool) -> tuple[int, int]:
    """Return the bounds of a stage: while all clients were at it, or of fixed work any."""
    began, ended = ([of[key] for of in clients] for key in ("started_ns", "ended_ns"))
    is_whole = is_whole or all(of["ended_by"] == "out-of-work" for of in clients)
    return (min(began), max(ended)) if is_whole else (max(began), min(ended))


def flat(stages: list[Json]) -> list[Json]:
    """Return the stages of a plan with repeated ones and steps in full."""
    found = []
    for stage in stages:
        job = stage.get("jobs", [{}])[0]
        loop = job.get("pacing", {}).get("open", {})
        if "repeat" in stage:
            found += flat(stage["repeat"]["stages"]) * stage["repeat"]["times"]
            continue
        for step in loop.get("steps", [None]):
            [(rate, lasts)] = step.items() if step else [(None, None)]
            own = {"pacing": {"open": loop | {"rate": rate}}}
            found.append(stage | {"duration": lasts, "jobs": [job | own]} if step else stage)
    return found


def plan_of(stage: Json, ahead: list[Json]) -> Json:
    """Return the plan of the next stage; all probes of a search are of one."""
    if "search" not in ahead[0]:
        return ahead.pop(0)
    [job] = ahead[0]["search"]["stage"]["jobs"]
    loop = {"rate": stage["jobs"][0]["schedule"]["rates"][0], "arrivals": "poisson"}
    lasts = f"{stage['probe']['lasts_ns']}ns"
    return {"jobs": [job | {"pacing": {"open": loop}}], "duration": lasts}


def recount(differ: Differ, place: Path, run: str, report: Json) -> None:
    """Hold a report against the op log of its run."""
    manifest, plan, script = (json.loads((place / of).read_text())
                              for of in (f"{run}/run.json", "plan.json", "script.json"))
    on_files, ahead, probes = "targets" in plan, flat(plan["stages"]), []
    log = f"SELECT {COLUMNS} FROM '{place / run}/ops/*.parquet'"
    ops = [Op(*row) for row in duckdb.sql(log).fetchall()]
    shown = {of["started_after_ns"]: of for of in report["stages"]}
    first = min(of["started_ns"] for of in manifest["stages"])
    for stage in (of for of in manifest["stages"] if of["kind"] != "cleanup"):
        planned, name = plan_of(stage, ahead), f"stage {stage['index']} {stage['name']}"
        jobs = [Job(number, job, planned) for number, job in enumerate(planned["jobs"])]
        mine, clients = [op for op in ops if op.stage == stage["index"]], clients_of(
            manifest, stage["index"])
        if not manifest["merged"]:
            draws(differ, name, jobs, mine, stage)
        probes += [(stage, mine)] if "probe" in stage else []
        bounds = bounds_of(clients, on_files or stage["kind"] != "measure")
        of = shown.get(bounds[0] - first)
        if of is None:
            differ.one(f"{name} is left out", stage["kind"] != "measure", True)
            continue
        differ.one(f"{name}.op_log", of["op_log"]["rows_count"], len(mine))
        groups: dict[Any, list[Job]] = defaultdict(list)
        for job in jobs:
            groups[job.plan.get("group", f"job {job.number}")].append(job)
        skipped = {job["name"]: job["schedule"]["skipped_count"] for job in stage["jobs"]
                   if "schedule" in job}
        for group, told in zip(groups.values(), of["rows"], strict=True):
            own = [op for op in mine if op.job in {job.number for job in group}]
            row = Row(differ, f"{name}, {told['name']}", told, group, own)
            row.lay(clients, bounds, on_files)
            row.hold()
            row.schedules(skipped)
            row.steps()
            row.ledger(len(groups))
            if told["steadiness"] and script.keys() <= {"schema", "service"} and (
                    "constant" in script["service"]["time"] and not manifest["merged"]):
                # Such a store never changes, whatever ramps do.
                unchanged = dict.fromkeys(("warm_up_shift", "drift", "cliff", "period_ns"))
                differ.each(f"{row.name}.steadiness", told["steadiness"], unchanged)
    for line in report.get("load_lines", []):
        hold_line(differ, line, probes)


def hold(place: Path) -> Differ:
    """Recount all that the program said of a plan."""
    differ = Differ(place)
    for run, told in (("run", "report.json"), ("merged", "merge.json")):
        if (place / run).exists():
            differ.place = place / run
            recount(differ, place, run, json.loads((place / told).read_text()))
    differ.place = place
    elsewhere.hold(differ, place)
    return differ


def main() -> int:
    """Count all places again; the exit code is 1 where a figure differs."""
    with Pool(len(sched_getaffinity(0))) as pool:
        done = pool.map(hold, sorted(Path(sys.argv[1]).iterdir()))
    told = [line for differ in done for line in differ.told]
    compared = sum(differ.compared for differ in done)
    print("\n".join([*told[:100], f"{len(done)} runs, {compared} figures, {len(told)} differ"]))
    return 1 if told or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
