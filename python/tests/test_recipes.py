"""Each recipe gives the figures of the report."""

import contextlib
import importlib.util
import io
import os
import re
import unittest
from types import ModuleType
from typing import Any

import nbformat
from nbclient import NotebookClient

import plimsoll_bench

from .place import (
    AFTER,
    ALL,
    APART,
    ERRORS,
    FAILING,
    FILES,
    MERGED,
    MIXED,
    OPEN,
    PLACE,
    RAMPS,
    RECIPES,
    STAGES,
    Key,
    figures,
    is_same_time,
    numbered,
    report,
    titles,
)


def run(name: str) -> plimsoll_bench.Run:
    return plimsoll_bench.load(PLACE / name)


def sql(recipe: str, *names: str) -> list[dict[str, Any]]:
    """Return the rows that a recipe in SQL gives, by the views in docs/recipes."""
    import duckdb

    connection = duckdb.connect()
    places = [str(PLACE / name) for name in names]
    connection.execute(f"SET VARIABLE run_dir = {places if len(places) > 1 else places[0]!r}")
    connection.execute((RECIPES / "views.sql").read_text())
    found = connection.execute((RECIPES / "sql" / f"{recipe}.sql").read_text())
    columns = [column[0] for column in found.description]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


def module(name: str) -> ModuleType:
    """Return a file of recipes in Python."""
    spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def rows(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame of pandas or polars."""
    if hasattr(frame, "to_dicts"):
        return frame.to_dicts()
    return frame.reset_index().to_dict("records")


class Sql(unittest.TestCase):
    def test_every_recipe_is_tried(self) -> None:
        tried = {
            "cells", "client-and-store", "compare", "errors", "join-runs", "percentiles", "slowest",
            "throughput",
        }  # fmt: skip
        self.assertEqual({path.stem for path in (RECIPES / "sql").iterdir()}, tried)

    def test_percentiles_are_those_of_the_report(self) -> None:
        for name in (MIXED, OPEN, FILES, ERRORS, MERGED, STAGES):
            told = figures(name)
            found = {
                Key(row["stage"], row["row_name"], row["kind"]): row
                for row in sql("percentiles", name)
            }
            self.assertEqual(
                set(found), {key for key in told if told[key]["latency_ns"]["samples_count"]}
            )
            for key, row in found.items():
                times = told[key]["latency_ns"]
                self.assertEqual(row["samples"], times["samples_count"], (name, key))
                for percentile in ("p50", "p90", "p99", "p99_9"):
                    ms = row[f"{percentile}_ms"]
                    self.assertTrue(is_same_time(times[percentile], ms), (name, key, percentile))
                self.assertEqual(round(row["max_ms"] * 1e6), times["max"], (name, key))

    def test_the_view_of_sums_has_counts_and_rates_of_the_report(self) -> None:
        for name in ALL:
            database = plimsoll_bench.connect(PLACE / name)
            found = database.execute(
                "SELECT stage_index, row_name, kind, ops_ok, ops_failed, ops_per_s, mib_per_s "
                "FROM summary"
            ).fetchall()
            told, title = figures(name), titles(name)
            self.assertEqual({Key(title[row[0]], *row[1:3]) for row in found}, set(told), name)
            for index, row, kind, ops_ok, ops_failed, ops_per_s, mib_per_s in found:
                stage = title[index]
                of = told[Key(stage, row, kind)]
                total = of["stage_total"]
                self.assertEqual(ops_ok, total["ops_ok_count"], (name, stage, row, kind))
                self.assertEqual(ops_failed, total["ops_failed_count"], (name, stage, row, kind))
                self.assertAlmostEqual(
                    ops_per_s, of["rates"]["ops_per_sec"], delta=ops_per_s * 1e-5
                )
                told_bytes = of["rates"]["bytes_per_sec"]
                if mib_per_s is not None and told_bytes is not None:
                    self.assertAlmostEqual(
                        mib_per_s * 2**20, told_bytes, delta=told_bytes * 1e-5 + 1e-6
                    )

    def test_spans_are_those_of_the_report(self) -> None:
        for name in ALL:
            told = {}
            indices = list(titles(name))
            results = [stage for stage in report(name)["stages"] if stage["is_result"]]
            for index, stage in zip(indices, results, strict=True):
                for row in stage["rows"]:
                    span = row["span"]
                    told[index, row["name"]] = (span["rule"], span["started_ns"], span["ended_ns"])
            found = plimsoll_bench.connect(PLACE / name).execute(
                "SELECT stage_index, row_name, rule, began_ns, ended_ns FROM spans"
            )
            spans = {(index, row): tuple(of) for index, row, *of in found.fetchall()}
            self.assertEqual(spans, told, name)
            of_python = {
                (span.stage_index, stage.row_name(stage.jobs[span.job_indices[0]])): (
                    span.rule,
                    span.began_ns,
                    span.ended_ns,
                )
                for span in run(name).spans()
                for stage in [run(name).stages[span.stage_index]]
            }
            self.assertEqual(of_python, told, name)

    def test_a_run_of_failures_alone_has_a_rate_of_nothing(self) -> None:
        database = plimsoll_bench.connect(PLACE / FAILING)
        found = database.execute(
            "SELECT ops_ok, ops_failed, ops_per_s, mib_per_s, latency_ms_p50 FROM summary"
        ).fetchall()
        (told,) = figures(FAILING).values()
        failed = told["stage_total"]["ops_failed_count"]
        self.assertGreater(failed, 0)
        self.assertEqual(told["rates"]["ops_per_sec"], 0)
        self.assertEqual(found, [(0, failed, 0, 0, None)])
        self.assertEqual(len(plimsoll_bench.load(PLACE / FAILING).operations(measured=True)), 0)

    def test_the_query_in_the_page_on_the_op_log_is_right(self) -> None:
        import duckdb

        page = (RECIPES.parent / "formats" / "ops.md").read_text()
        (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
        found = duckdb.sql(query.replace("RUN/", f"{PLACE / MIXED}/")).fetchall()
        told = {key.kind: kind["latency_ns"] for key, kind in figures(MIXED).items()}
        self.assertEqual([kind for kind, *_ in found], sorted(told))
        for kind, ops, p99_ms in found:
            self.assertEqual(ops, told[kind]["samples_count"])
            self.assertTrue(is_same_time(told[kind]["p99"], p99_ms), kind)

    def test_throughput_adds_up_to_the_stage(self) -> None:
        for name in (MIXED, FILES, ERRORS):
            told = figures(name).values()
            found = sql("throughput", name)
            self.assertEqual(
                sum(row["ops_ok"] for row in found),
                sum(kind["stage_total"]["ops_ok_count"] for kind in told),
            )
            self.assertEqual(
                sum(row["ops_failed"] for row in found),
                sum(kind["stage_total"]["ops_failed_count"] for kind in told),
            )

    def test_errors_are_counted_by_class(self) -> None:
        found: dict[tuple[str, str], int] = {}
        for row in sql("errors", ERRORS):
            key = (row["kind"], row["outcome"])
            found[key] = found.get(key, 0) + row["ops_failed"]
            self.assertLessEqual(row["first_s"], row["last_s"])
        told = {
            (key.kind, outcome): count
            for key, kind in figures(ERRORS).items()
            for outcome, count in kind["stage_total"]["failed_by_class"].items()
        }
        self.assertTrue(told, "the store was to fail")
        self.assertEqual(found, told)
        self.assertEqual(sql("errors", MIXED), [])

    def test_the_slowest_are_in_order_and_have_a_host(self) -> None:
        found = sql("slowest", MIXED)
        self.assertEqual(len(found), 20)
        latencies = [row["latency_ms"] for row in found]
        self.assertEqual(latencies, sorted(latencies, reverse=True))
        longest = max(kind["latency_ns"]["max"] for kind in figures(MIXED).values())
        self.assertEqual(round(latencies[0] * 1e6), longest)
        endpoints = set(report(MIXED)["endpoints"])
        self.assertLessEqual({row["endpoint"] for row in found}, endpoints)

    def test_two_runs_are_compared_in_the_order_of_time(self) -> None:
        before, after = figures(MIXED), figures(AFTER)
        found = {row["kind"]: row for row in sql("compare", AFTER, MIXED)}
        self.assertEqual(set(found), {key.kind for key in before})
        for key, kind in before.items():
            row = found[key.kind]
            self.assertEqual(row["samples_before"], kind["latency_ns"]["samples_count"])
            self.assertEqual(row["samples_after"], after[key]["latency_ns"]["samples_count"])

    def test_stages_of_one_name_are_compared_with_their_own_like(self) -> None:
        found = [row for row in sql("compare", APART, f"{APART}-after") if row["stage"] != "apart"]
        told = figures(APART)
        self.assertEqual([row["stage"] for row in found], ["main", numbered("main", 2)])
        for row in found:
            of = told[Key(row["stage"], row["row_name"], row["kind"])]
            self.assertEqual(row["samples_before"], of["latency_ns"]["samples_count"])

    def test_a_percentile_needs_an_operation_beyond_it(self) -> None:
        database = plimsoll_bench.connect(PLACE / APART)
        found = database.execute(
            "SELECT row_name, samples, latency_ms_p50, latency_ms_p99, latency_ms_p99_9 "
            "FROM summary"
        ).fetchall()
        self.assertTrue(any(samples < 100 for _, samples, *_ in found))
        for row, samples, *percentiles in found:
            known = [samples is not None and samples >= least for least in (2, 100, 1_000)]
            self.assertEqual([of is not None for of in percentiles], known, row)

    def test_the_parts_of_a_latency_add_up(self) -> None:
        for name in (MIXED, OPEN, FILES, STAGES):
            told = figures(name)
            for row in sql("client-and-store", name):
                parts = ("client_wait_ms", "send_ms", "store_ms", "receive_ms")
                self.assertAlmostEqual(sum(row[part] for part in parts), row["latency_ms"], 6)
                mean = told[Key(row["stage"], row["row_name"], row["kind"])]["latency_ns"]["mean"]
                self.assertAlmostEqual(row["latency_ms"] * 1e6, mean, delta=1)
                delay = (
                    told[Key(row["stage"], row["row_name"], row["kind"])]["schedule_delay_ns"]
                    or {"mean": 0}
                )["mean"]
                self.assertAlmostEqual(row["client_wait_ms"] * 1e6, delay, delta=1)

    def test_runs_are_joined(self) -> None:
        found = sql("join-runs", MIXED, AFTER, OPEN)
        self.assertEqual(
            {row["run_id"] for row in found}, {run(name).run_id for name in (MIXED, AFTER, OPEN)}
        )
        expected = [len(figures(name)) for name in (MIXED, AFTER, OPEN)]
        self.assertEqual(len(found), sum(expected))

    def test_cells_count_what_ended(self) -> None:
        for name in (MIXED, ERRORS, STAGES):
            found: dict[str, int] = {}
            for row in sql("cells", name):
                found[row["stage"]] = found.get(row["stage"], 0) + row["ops_ok"] + row["ops_failed"]
            told: dict[str, int] = {}
            for stage in run(name).stages:
                told[stage.name] = told.get(stage.name, 0) + (stage.ops_count or 0)
            self.assertEqual(found, {stage: count for stage, count in told.items() if count})


class Python(unittest.TestCase):
    def test_both_libraries_give_the_percentiles_of_the_report(self) -> None:
        for recipes in (module("pandas_recipes"), module("polars_recipes")):
            for name in (MIXED, OPEN, FILES, ERRORS, MERGED, STAGES):
                told = figures(name)
                found = rows(recipes.percentiles(run(name)))
                self.assertEqual(
                    {Key(row["stage"], row["row_name"], row["kind"]) for row in found}, set(told)
                )
                for row in found:
                    times = told[Key(row["stage"], row["row_name"], row["kind"])]["latency_ns"]
                    self.assertEqual(row["samples"], times["samples_count"])
                    for percentile in ("p50", "p90", "p99"):
                        self.assertTrue(is_same_time(times[percentile], row[f"{percentile}_ms"]))

    def test_both_libraries_say_the_same_as_sql(self) -> None:
        for recipes in (module("pandas_recipes"), module("polars_recipes")):
            for name in (MIXED, RAMPS):
                self.assertEqual(
                    sum(row["ops_ok"] for row in rows(recipes.throughput(run(name)))),
                    sum(row["ops_ok"] for row in sql("throughput", name)),
                )
            key = ("kind", "endpoint", "outcome", "ops_failed")
            self.assertEqual(
                {tuple(row[name] for name in key) for row in rows(recipes.errors(run(ERRORS)))},
                {tuple(row[name] for name in key) for row in sql("errors", ERRORS)},
            )
            self.assertEqual(
                [round(row["latency_ms"] * 1e6) for row in rows(recipes.slowest(run(MIXED)))],
                [round(row["latency_ms"] * 1e6) for row in sql("slowest", MIXED)],
            )
            parts = {row["kind"]: row for row in rows(recipes.client_and_store(run(MIXED)))}
            for row in sql("client-and-store", MIXED):
                for part in ("client_wait_ms", "send_ms", "store_ms", "receive_ms", "latency_ms"):
                    self.assertAlmostEqual(parts[row["kind"]][part], row[part], 6)
            compared = rows(recipes.compare(run(MIXED), run(AFTER)))
            changes = {row["kind"]: row["p99_change_percent"] for row in compared}
            for row in sql("compare", MIXED, AFTER):
                self.assertAlmostEqual(changes[row["kind"]], row["p99_change_percent"], 6)
            joined = rows(recipes.join_runs([run(MIXED), run(AFTER)]))
            self.assertEqual(len(joined), len(figures(MIXED)) + len(figures(AFTER)))

    def test_each_file_runs_as_a_program(self) -> None:
        for name in ("pandas_recipes", "polars_recipes"):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                module(name).main([str(PLACE / MIXED), str(PLACE / AFTER)])
            for recipe in ("percentiles:", "compare:", "join_runs:"):
                self.assertIn(recipe, printed.getvalue())

    def test_the_notebook_runs_and_is_kept_without_outputs(self) -> None:
        notebook = nbformat.read(RECIPES / "notebook.ipynb", as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        self.assertTrue(all(not cell.outputs and cell.execution_count is None for cell in code))
        os.environ["PLIMSOLL_RUN"] = str(PLACE / MIXED)
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
        shown = code[1].outputs[-1]["data"]["text/plain"]
        for key, kind in figures(MIXED).items():
            line = next(line for line in shown.splitlines() if f"{key.kind} " in line)
            self.assertIn(str(kind["latency_ns"]["samples_count"]), line.split())
