"""The reader says of a run what the program says of it."""

import json
import os
import random
import shutil
import tempfile
import unittest
import warnings
from pathlib import Path

import plimsoll_bench
from plimsoll_bench import Histogram
from plimsoll_bench._checksum import crc64_nvme

from .place import (
    ALL,
    ERRORS,
    FILES,
    MIXED,
    OPEN,
    PLACE,
    RAMPS,
    RECIPES,
    STAGES,
    figures,
    is_same_time,
)

#: How many operations are compared column by column.
SAMPLE = 500
ENGINES: tuple[plimsoll_bench.Engine, ...] = ("pyarrow", "pandas", "polars", "duckdb")


def records(
    run: plimsoll_bench.Run, engine: plimsoll_bench.Engine, *, measured: bool
) -> list[dict]:
    """Return the operations as plain values, in an order that no engine decides."""
    found = run.operations(engine, measured=measured)
    if engine == "pyarrow":
        rows = found.to_pylist()
    elif engine == "pandas":
        rows = found.astype(object).where(found.notna(), None).to_dict("records")
    elif engine == "polars":
        rows = found.collect().to_dicts()
    else:
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    return sorted(rows, key=lambda row: (row["worker"], row["stage_index"], row["end_ns"]))


class Reader(unittest.TestCase):
    def test_the_manifest_is_read(self) -> None:
        run = plimsoll_bench.load(PLACE / MIXED)
        self.assertEqual(run.state, "complete")
        self.assertEqual([stage.kind for stage in run.stages], ["prepare", "measure"])
        self.assertEqual(run.started_at.isoformat()[:19], run.manifest["started_at"][:19])
        self.assertEqual(run.stages[1].jobs[0].workers_count, 4)

    def test_every_engine_gives_the_same_operations(self) -> None:
        for name in (MIXED, OPEN, FILES, ERRORS, RAMPS):
            run = plimsoll_bench.load(PLACE / name)
            for measured in (False, True):
                by_engine = {engine: records(run, engine, measured=measured) for engine in ENGINES}
                first = by_engine["pyarrow"]
                self.assertTrue(first)
                for engine, rows in by_engine.items():
                    self.assertEqual(len(rows), len(first), (name, engine))
                    for row, expected in zip(rows[:SAMPLE], first[:SAMPLE], strict=True):
                        for column, value in expected.items():
                            if column == "started_at":
                                continue
                            if isinstance(value, float):
                                self.assertAlmostEqual(row[column], value, 9, (engine, column))
                            else:
                                self.assertEqual(row[column], value, (name, engine, column))

    def test_the_measured_operations_are_those_of_the_report(self) -> None:
        for name in ALL:
            run = plimsoll_bench.load(PLACE / name)
            told = sum(kind["latency_ns"]["samples_count"] for kind in figures(name).values())
            for engine in ENGINES:
                self.assertEqual(len(records(run, engine, measured=True)), told, (name, engine))
            spans = {engine: run.spans(engine) for engine in ("pyarrow", "polars", "duckdb")}
            for found in spans.values():
                self.assertEqual(found, spans["pyarrow"], name)

    def test_the_summary_gives_the_percentiles_of_the_whole_span(self) -> None:
        for name in (MIXED, FILES, STAGES):
            run = plimsoll_bench.load(PLACE / name)
            for key, kind in figures(name, "full").items():
                found, told = run.latency(key.kind, key.stage), kind["latency_ns"]
                if found.count != told["samples_count"]:
                    # What reaches beyond the stage is in the summary, and in no span.
                    self.assertGreater(found.count, told["samples_count"], (name, key))
                    continue
                self.assertEqual((found.min_ns, found.max_ns), (told["min"], told["max"]))
                for percent, field in ((50, "p50"), (90, "p90"), (99, "p99"), (99.9, "p99_9")):
                    if told[field] is not None:
                        self.assertEqual(found.percentile_ns(percent), told[field], (name, key))
            lanes = [lane for lane in run.lanes if lane.stage.is_measured]
            self.assertEqual(
                sum(lane.ops_ok_count for lane in lanes),
                sum(kind["stage_total"]["ops_ok_count"] for kind in figures(name).values()),
            )

    def test_views_are_shipped(self) -> None:
        self.assertEqual(plimsoll_bench.views_sql(), (RECIPES / "views.sql").read_text())

    def test_a_damaged_manifest_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "run"
            shutil.copytree(PLACE / MIXED, copy)
            manifest = copy / "run.json"
            manifest.write_bytes(manifest.read_bytes().replace(b'"complete"', b'"completE"', 1))
            says = "checksum does not match"
            for opened in (plimsoll_bench.load, plimsoll_bench.connect):
                with self.assertRaisesRegex(plimsoll_bench.DamagedRecord, says):
                    opened(copy)
            other = json.loads((PLACE / MIXED / "run.json").read_text())
            del other["checksum"]
            other["schema"] = "plimsoll.run/9"
            manifest.write_text(json.dumps(other))
            with self.assertRaisesRegex(plimsoll_bench.DamagedRecord, "plimsoll.run/9"):
                plimsoll_bench.load(copy)
            with self.assertRaises(FileNotFoundError):
                plimsoll_bench.load(Path(folder) / "nowhere")
            manifest.write_text("[" * 200_000)
            with self.assertRaisesRegex(plimsoll_bench.DamagedRecord, "is no JSON"):
                plimsoll_bench.load(copy)
            manifest.unlink()
            os.mkfifo(manifest)
            with self.assertRaisesRegex(plimsoll_bench.DamagedRecord, "is not a regular file"):
                plimsoll_bench.load(copy)
            manifest.unlink()
            manifest.symlink_to("/dev/zero")
            with self.assertRaisesRegex(plimsoll_bench.DamagedRecord, "is a symbolic link"):
                plimsoll_bench.load(copy)

    def test_a_damaged_part_is_refused_by_every_engine(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "run"
            shutil.copytree(PLACE / MIXED, copy)
            part = copy / "ops" / "part-000000.parquet"
            whole = part.read_bytes()
            digits_at = whole.rindex(b"crc64-nvme:") + len(b"crc64-nvme:")
            # Within the rows, a digit, which is none any more, and the mark before the digits.
            for at in (len(whole) // 2, digits_at, digits_at - 1):
                part.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
                for engine in ENGINES:
                    run = plimsoll_bench.load(copy)
                    for read in (run.operations, run.spans):
                        with self.assertRaisesRegex(plimsoll_bench.DamagedRecord, "part-000000"):
                            read(engine)
                with self.assertRaisesRegex(plimsoll_bench.DamagedRecord, "part-000000"):
                    plimsoll_bench.connect(copy)
                plimsoll_bench.connect(copy, verify=False)
            # The last of these has no checksum, and is refused where the manifest has none either.
            manifest = json.loads((copy / "run.json").read_text())
            del manifest["checksum"]
            (copy / "run.json").write_text(json.dumps(manifest))
            with self.assertRaisesRegex(plimsoll_bench.DamagedRecord, "it has no checksum"):
                plimsoll_bench.connect(copy)

    def test_a_path_is_no_pattern(self) -> None:
        for odd, sibling in (("run[1]", "run1"), ("a?b", "aXb"), ("a*", "ab"), ("it's", "its")):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder)
                shutil.copytree(PLACE / MIXED, place / odd)
                expected = records(plimsoll_bench.load(PLACE / MIXED), "pyarrow", measured=True)
                for has_sibling in (False, True):
                    if has_sibling:
                        shutil.copytree(PLACE / ERRORS, place / sibling)
                    run = plimsoll_bench.load(place / odd)
                    for engine in ENGINES:
                        found = records(run, engine, measured=True)
                        self.assertEqual(
                            [(row["run_id"], row["end_ns"]) for row in found],
                            [(row["run_id"], row["end_ns"]) for row in expected],
                            (odd, engine),
                        )
                    views = plimsoll_bench.connect(place / odd)
                    names = views.execute("SELECT run_dir FROM runs").fetchall()
                    self.assertEqual(names, [(str(place / odd),)])

    def test_a_pattern_finds_runs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in (MIXED, ERRORS):
                shutil.copytree(PLACE / name, Path(folder) / name)
            (Path(folder) / "no-run").mkdir()
            views = plimsoll_bench.connect(f"{folder}/*")
            self.assertEqual(views.execute("SELECT count(*) FROM runs").fetchone(), (2,))
            with self.assertRaisesRegex(FileNotFoundError, "finds no run"):
                plimsoll_bench.connect(f"{folder}/nothing*")

    def test_open_parts_are_told_of(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "run"
            shutil.copytree(PLACE / MIXED, copy)
            part = copy / "ops" / "part-000000.parquet"
            part.rename(part.with_suffix(".parquet.open"))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                run = plimsoll_bench.load(copy)
            self.assertRegex(str(caught[0].message), "operations of its open parts are left out")
            with self.assertRaises(FileNotFoundError):
                run.operations()

    def test_a_killed_run_has_figures_up_to_its_last_closed_part(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "run"
            shutil.copytree(PLACE / MIXED, copy)
            whole = plimsoll_bench.load(copy)
            manifest = json.loads((copy / "run.json").read_text())
            del manifest["checksum"]
            manifest["state"] = "running"
            manifest["stages"][1].update(started_ns=None, ended_ns=None)
            (copy / "run.json").write_text(json.dumps(manifest))
            (copy / "summary.json").unlink()
            killed = plimsoll_bench.load(copy)
            self.assertEqual(killed.stages[1].started_ns, whole.stages[0].ended_ns)
            for engine in ("pyarrow", "polars", "duckdb"):
                self.assertEqual(killed.spans(engine), whole.spans(engine))
            found = plimsoll_bench.connect(copy).execute(
                "SELECT sum(samples), sum(ops_ok), min(ops_per_s) > 0 FROM summary"
            )
            told = figures(MIXED).values()
            samples = sum(kind["latency_ns"]["samples_count"] for kind in told)
            ops_ok = sum(kind["stage_total"]["ops_ok_count"] for kind in told)
            self.assertEqual(found.fetchone(), (samples, ops_ok, True))

    def test_ramps_are_left_out(self) -> None:
        run = plimsoll_bench.load(PLACE / RAMPS)
        self.assertEqual({span.rule for span in run.spans()}, {"all-workers", "schedule"})
        marked = run.operations().column("measured").to_pylist()
        self.assertIn(False, marked)
        self.assertIn(True, marked)


class Histograms(unittest.TestCase):
    def test_the_checksum_is_that_of_the_format(self) -> None:
        self.assertEqual(crc64_nvme(b"123456789"), 0xAE8B14860A799888)
        # Bit by bit: what is long is summed up in stretches.
        content = random.Random(7).randbytes(8_192 * 9 + 5)
        crc = (1 << 64) - 1
        for byte in content:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x9A6C9329AC4BC9B5 if crc & 1 else 0)
        self.assertEqual(crc64_nvme(content), crc ^ (1 << 64) - 1)

    def test_percentiles_are_upper_ends_of_bins(self) -> None:
        # Bins are 1 wide up to 2,047, 2 from 2,048 on, 4 from 4,096 on.
        stored = {
            "count": 4, "sum": "9244", "sum_of_squares": "0", "min": 5, "max": 4099,
            "bins": [[5, 1], [2047, 1], [2048, 1], [4096, 1]],
        }  # fmt: skip
        one = Histogram.from_json(stored)
        self.assertEqual(
            [one.percentile_ns(p) for p in (0, 25, 50, 75, 100)], [5, 5, 2047, 2049, 4099]
        )
        self.assertEqual(one.mean_ns, 2311)
        both = Histogram.merged([one, one])
        self.assertEqual((both.count, both.sum_ns, both.percentile_ns(51)), (8, 18488, 2049))
        self.assertIsNone(Histogram().percentile_ns(50))
        with self.assertRaises(ValueError):
            one.percentile_ns(101)
        with self.assertRaises(ValueError):
            Histogram.from_json({**stored, "count": 5})

    def test_a_time_is_that_of_the_report_only_within_its_bin(self) -> None:
        self.assertTrue(is_same_time(1_000_999, 1.0))
        self.assertFalse(is_same_time(1_002_000, 1.0))
        self.assertFalse(is_same_time(999_000, 1.0))
