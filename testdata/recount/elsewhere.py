"""Holds what the program says of a run in other forms against its report, which `recount.py` holds:
the exit code, the text, the page, the exports, the SQL views, warp's report, a comparison, a merge."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb

Json = dict[str, Any]
VIEWS = Path(__file__).parents[2] / "docs/recipes/views.sql"
MIB, UNITS = 1 << 20, {"ns": 1, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
NUMBER = r"[\d,]+(?:\.\d+)?"
#: Figures of the views, and how far each may be from the report: its percentiles are of bins.
VIEWED = {"ops_ok": 0, "ops_failed": 0, "ops_per_s": 1e-4, "mib_per_s": 1e-4, "samples": 0}
VIEWED |= {"latency_ms_p50": 1.1e-3, "latency_ms_p99": 1.1e-3}


def hold(differ: Any, place: Path) -> None:
    """Hold all other forms of what the program said of a plan."""
    read = {path.stem: path.read_text() for path in place.iterdir() if path.is_file()}
    report, live = json.loads((place / "report.json").read_text()), json.loads(read["live"])
    differ.one("report of the run and of its record", live["stages"] == report["stages"], True)
    differ.one("exit code", json.loads(read["exits"])["live.json"], exit_code(report))
    hold_operations(differ, place)
    hold_views(differ, place, report)
    # What is said of a load line is not said of its probes.
    if "load_lines" in report or not lines_of(report):
        return
    hold_text(differ, (place / "report.txt").read_text(), report)
    hold_page(differ, read["page"], report)
    hold_warp(differ, place, json.loads(read["warp"]))
    told = [of["throughput"]["value"] for of in json.loads(read["bencher"]).values()]
    known = [of["rates"]["ops_per_sec"] for *_, of in lines_of(report) if of["rates"]]
    differ.one("bencher: rates", sorted(filter(None, told)), sorted(filter(None, known)))
    compared = json.loads(read.get("compare") or "{}")
    for side, run in ((("before", report), ("after", json.loads(read["other"])))
                      if compared else ()):
        kinds = [of for of in compared["kinds"] if of[f"ops_count_{side}"]]
        each = [{of["metric"]: of[side]["values"] for of in kind["metrics"]} for kind in kinds]
        told = Counter((kind["kind"], *of.get("rate", []), *of.get("p99", []))
                       for kind, of in zip(kinds, each, strict=True))
        known = Counter((kind, *[of["rates"]["ops_per_sec"]] * (of["rates"] is not None),
                         *[of["latency_ns"]["p99"]] * (of["latency_ns"]["p99"] is not None))
                        for *_, kind, of in lines_of(run))
        differ.one(f"compare: {side}", sorted((told - known) + (known - told)), [])


def lines_of(report: Json) -> list[tuple[Json, Json, str, Json]]:
    """Return stage, row, kind and figures of each line of the table of results."""
    return [(stage, row, kind.get("kind", "total"), kind)
            for stage in report["stages"] if stage["is_result"] for row in stage["rows"]
            for kind in row["kinds"] + [row["total"]] * (len(row["kinds"]) > 1)]


def exit_code(report: Json) -> int:
    """Return 1 where too much failed, a schedule was not kept, or there is no result."""
    lines = report.get("load_lines", [])
    bad = [line["line"] is None for line in lines]
    for stage in (of for of in report["stages"] if of["is_result"] and not lines):
        failed, ended = 0, 0
        for row in stage["rows"]:
            total, most = row["total"]["stage_total"], row["error_rate_max"]
            count = total["ops_failed_count"], total["ops_failed_count"] + total["ops_ok_count"]
            bad += [not of["kept"] for of in row["schedules"]]
            bad.append(most is not None and count[0] > most * count[1])
            if most is None:
                failed, ended = failed + count[0], ended + count[1]
        bad += [failed > 0.01 * ended, not any(row["kinds"] for row in stage["rows"])]
    return int(any(bad))


def hold_near(differ: Any, label: str, told: str, value: float | None) -> None:
    """Hold a figure as people read it, which has three digits."""
    number, _, unit = told.partition(" ")
    found = None if told == "–" else float(number.replace(",", "")) * UNITS.get(unit, 1)
    same = found == value if None in (found, value) else abs(found - value) <= 5.1e-3 * value
    differ.one(label, told, told if same else value)


def hold_page(differ: Any, page: str, report: Json) -> None:
    """Hold counts, rates and latencies in the tables of the page."""
    def cells(text: str) -> list[str]:
        each = re.findall(r"<t[hd].*?</t[hd]>", text, re.DOTALL)
        return [html.unescape(re.sub("<[^>]+>", "", one)) for one in each]

    told: dict[str, list[Any]] = {"counts": [], "rates": [], "latency": []}
    for table in re.findall(r"<table.*?</table>", page, re.DOTALL):
        heading, *rows = map(cells, re.findall(r"<tr.*?</tr>", table, re.DOTALL))
        named = [dict(zip(heading[1:], row[1:], strict=True)) | {"kind": row[0]} for row in rows
                 if not row[0].endswith((", first", ", last"))]
        if "succeeded" in heading:
            told["counts"] += named
        if "average" in heading and heading[0] == "rate" or "rate" in heading[1:4]:
            told["rates"] += [of for of in named if of["kind"]]
        if heading[0].startswith("latency"):
            parts = ("service time", "schedule delay")
            own = [of for of in named if of["kind"].split(", ")[-1] not in parts]
            told["latency"] += own
    for what, named in told.items():
        # On files there are no totals, jobs are named, and latency is of what succeeded.
        lines = [line for line in lines_of(report)
                 if line[2] != "total" or not line[1]["is_on_files"]]
        if what == "latency":
            lines = [line for line in lines if not line[1]["is_on_files"]
                     or line[3]["stage_total"]["ops_ok_count"]]
        kinds = [of["kind"].removesuffix(" latency").split(", ")[-1] for of in named]
        differ.one(f"page: {what}", kinds, [kind for *_, kind, _ in lines])
        for of, (stage, row, kind, known) in zip(named, lines, strict=False):
            label, total = f"page: {stage['name']}, {row['name']}, {kind}", known["stage_total"]
            if what == "counts":
                hold_near(differ, f"{label}, succeeded", of["succeeded"], total["ops_ok_count"])
                hold_near(differ, f"{label}, failed", of["failed"], total["ops_failed_count"])
            elif what == "rates":
                rate = of.get("average", of.get("rate", "–"))
                hold_near(differ, f"{label}, rate", rate, (known["rates"] or {}).get("ops_per_sec"))
            else:
                for name in ("p50", "p99", "p99.9", "max"):
                    value = known["latency_ns"][name.replace(".", "_")]
                    hold_near(differ, f"{label}, {name}", of[name], value)


def hold_warp(differ: Any, place: Path, told: Json) -> None:
    """Hold the sums of warp's report against the op log."""
    stages = json.loads((place / "run" / "run.json").read_text())["stages"]
    measured = [of["index"] for of in stages if of["kind"] == "measure"]
    counted = duckdb.sql(f"""SELECT kind, count(*), count(*) FILTER (outcome <> 'ok'),
        coalesce(sum(bytes) FILTER (outcome = 'ok'), 0) FROM '{place}/run/ops/*.parquet'
        WHERE measured AND stage IN {measured} GROUP BY kind""").fetchall()
    names = ("total_requests", "total_errors", "total_bytes")
    each = {kind: tuple(of[name] for name in names) for kind, of in told["by_op_type"].items()}
    differ.one("warp's report", each, {kind: tuple(map(int, of)) for kind, *of in counted})


def hold_text(differ: Any, text: str, report: Json) -> None:
    """Hold the table, the headline and what was measured."""
    def near(label: str, told: str, value: float | None) -> None:
        hold_near(differ, f"text: {label}", told, value)

    stages = [of for of in report["stages"] if of["is_result"]]
    lines, all_lines = text.splitlines(), lines_of(report)
    head = " ".join(lines[: lines.index("")])
    failed = sum(of["total"]["stage_total"]["ops_failed_count"]
                 for stage in stages for of in stage["rows"])
    differ.one("text: failed", re.findall(rf"({NUMBER}) failed", head), [f"{failed:,}"])
    # The share of them is told of a run of one row alone, which is not on files.
    rows = [row for stage in stages for row in stage["rows"]]
    is_told = failed > 0 and len(rows) == 1 and not rows[0]["is_on_files"]
    shares = re.findall(rf"{NUMBER} failed \(({NUMBER}) %\)", head)
    differ.one("text: the share of what failed is told", bool(shares), is_told)
    if is_told and shares:
        near("share of what failed", shares[0], 100 * rows[0]["error_rate"])
    told = re.findall(rf"({NUMBER}) (?:ops/s|IOPS)", head)
    # A run with one result of one kind has that one's rate in the headline.
    one_kind = sum(len(row["kinds"]) for stage in stages for row in stage["rows"]) == 1
    for stage, rate in zip([of for of in stages if any(row["kinds"] for row in of["rows"])], told,
                           strict=False):
        rows = [row for row in stage["rows"]
                if row["total"]["rates"] and (row["kinds"] or not one_kind)]
        began, ended = ([row["span"][at] for row in rows] for at in ("started_ns", "ended_ns"))
        ops = sum(row["total"]["rates"]["ops_per_sec"] * (end - start)
                  for row, start, end in zip(rows, began, ended, strict=True))
        near(f"headline of {stage['name']}", rate, ops / (max(ended) - min(began)))
    if len(stages) == 1:
        told = re.findall(rf"^measured (?!.*nothing).*?({NUMBER} [nµm]?s)\b", text, re.MULTILINE)
        spans = [of["span"] for of in stages[0]["rows"]
                 if of["kinds"] or of["span"]["rule"] != "full-too-short"]
        for one, span in zip(told, spans, strict=False):
            near("measured", one, span["ended_ns"] - span["started_ns"])
    at = next(at for at, line in enumerate(lines) if "ops/s  " in line and "p50" in line)
    columns, names = lines[at].split(), {kind for *_, kind, _ in all_lines}
    table = [re.split(r"\s{2,}", line.strip()) for line in lines[at + 1 : lines.index("", at)]]
    table = [cells for cells in table if cells[0] in names and len(cells) == len(columns) + 1]
    differ.one("text: table", [cells[0] for cells in table], [kind for *_, kind, _ in all_lines])
    for cells, (stage, row, kind, of) in zip(table, all_lines, strict=False):
        rates, latency, total = of["rates"] or {}, of["latency_ns"], of["stage_total"]
        moved = rates["bytes_per_sec"] / MIB if rates and total["bytes"] else None
        known = {"ops/s": rates.get("ops_per_sec"), "obj/s": rates.get("objects_per_sec"),
                 "MiB/s": moved, "p50": latency["p50"], "p99": latency["p99"],
                 "p99.9": latency["p99_9"], "max": latency["max"],
                 "failed": total["ops_failed_count"]}
        for column, cell in zip(columns, cells[1:], strict=True):
            near(f"{stage['name']}, {row['name']}, {kind}, {column}", cell, known[column])


def hold_operations(differ: Any, place: Path) -> None:
    """Hold each line of the CSV against the op log, and that of a merge against its parts."""
    def of(file: str, columns: str) -> Counter[Any]:
        return Counter(duckdb.sql(f"SELECT {columns} FROM '{place}/{file}'").fetchall())

    same = "worker, kind, objects_count, bytes, start_ns, end_ns, outcome"
    told = of("ops.csv", f"stage_index, {same}, latency_ns")
    logged = of("run/ops/*.parquet", f"stage, {same}, end_ns - start_ns + schedule_delay_ns")
    differ.one("CSV", told == logged, True)
    if (place / "merged").exists():
        # Workers and moments may have other numbers there.
        same = "kind, outcome, bytes, end_ns - start_ns, schedule_delay_ns, measured"
        each = [of(f"{run}/ops/*.parquet", same) for run in ("run", "other", "merged")]
        differ.one("op log of the merge", each[2] == each[0] + each[1], True)


def hold_views(differ: Any, place: Path, report: Json) -> None:
    """Hold the summary of the SQL views against the report."""
    base = duckdb.connect()
    base.execute(f"SET VARIABLE run_dir = '{place}/run'")
    base.execute(VIEWS.read_text())
    query = f"SELECT stage_index, row_name, kind, {', '.join(VIEWED)} FROM summary"
    summary = {row[:3]: row[3:] for row in base.sql(query).fetchall()}
    stages = json.loads((place / "run" / "run.json").read_text())["stages"]
    numbers = {of["started_ns"]: of["index"] for of in stages if of["kind"] == "measure"}
    # Workers that begin at drawn delays and go on in a ramp-down end apart from one another, which
    # is not on record.
    drawn = {of["index"] for of in stages for job in of["jobs"] if job.get("measured_until_ns")
             and job["measured_until_ns"] != job.get("planned_until_ns")}
    for stage, row, kind, of in (line for line in lines_of(report) if line[2] != "total"):
        if numbers[row["stage_started_ns"]] in drawn:
            continue
        label, total = f"views: {stage['name']}, {row['name']}, {kind}", of["stage_total"]
        told = summary.get((numbers[row["stage_started_ns"]], row["name"], kind))
        rates, latency = of["rates"] or {}, of["latency_ns"]
        known = [total["ops_ok_count"], total["ops_failed_count"], rates.get("ops_per_sec"),
                 rates.get("bytes_per_sec", 0) / MIB, latency["samples_count"]]
        known += [latency[at] and latency[at] / 1e6 for at in ("p50", "p99")]
        differ.one(f"{label} is there", told is not None, True)
        # The report counts whole bytes of the part of an operation that lies in the span.
        length = (row["span"]["ended_ns"] - row["span"]["started_ns"]) / 1e9
        whole = rates.get("bytes_per_sec", 0) * length
        off = VIEWED | {"mib_per_s": max(1e-4, total["ops_ok_count"] / whole if whole else 0)}
        for name, one, value in zip(VIEWED, told or (), known, strict=told is not None):
            if value is not None:
                differ.one(f"{label}, {name}", value, one or 0, off[name])
