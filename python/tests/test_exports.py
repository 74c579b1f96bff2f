"""What `plimsoll export` writes for other tools is what the run was, read without our code."""

import base64
import json
import math
import re
import struct
import unittest
import zlib
from collections import defaultdict
from typing import Any

import plimsoll_bench

from .place import ERRORS, MIXED, OPEN, PLACE, figures, report


def _counts(payload: bytes) -> list[int]:
    """Return the counts of a histogram: numbers in LEB128 and zigzag, a negative one for zeros."""
    counts: list[int] = []
    at = 0
    while at < len(payload):
        number = shift = 0
        while True:
            byte = payload[at]
            at += 1
            if shift == 56:
                number |= byte << shift
                break
            number |= (byte & 0x7F) << shift
            if not byte & 0x80:
                break
            shift += 7
        value = (number >> 1) ^ -(number & 1)
        if value < 0:
            counts.extend([0] * -value)
        else:
            counts.append(value)
    return counts


def decoded(text: str) -> dict[int, int]:
    """Return how many values a histogram of HdrHistogram (V2, compressed) holds, by the highest
    value of each bin."""
    packed = base64.b64decode(text)
    cookie, length = struct.unpack(">II", packed[:8])
    assert cookie == 0x1C849314, hex(cookie)
    plain = zlib.decompress(packed[8 : 8 + length])
    cookie, payload, offset, digits = struct.unpack(">IIII", plain[:16])
    assert (cookie, offset, digits) == (0x1C849313, 0, 3), (hex(cookie), offset, digits)
    lowest, highest, _ratio = struct.unpack(">QQd", plain[16:40])
    assert lowest == 1 < highest
    values = {}
    for index, count in enumerate(_counts(plain[40 : 40 + payload])):
        if count:
            # 2,048 bins in the first bucket, and 1,024 more for each doubling.
            bucket = max(index // 1024 - 1, 0)
            value = (index - bucket * 1024) << bucket
            values[value + (1 << bucket) - 1] = count
    return values


class HdrLog(unittest.TestCase):
    def read(self, name: str) -> dict[str, dict[int, int]]:
        text = (PLACE / f"{name}.hlog").read_text()
        run = plimsoll_bench.load(PLACE / name)
        start = re.search(r"#\[StartTime: ([\d.]+) \(seconds since epoch\)\]", text)
        assert start is not None
        self.assertAlmostEqual(float(start[1]), run.started_at.timestamp(), 2)
        self.assertIn("values are nanoseconds", text)
        sums: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        last = {}
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            tag, begin, length, highest, packed = line.split(",")
            self.assertEqual(length, "1.000")
            self.assertGreaterEqual(float(begin), last.get(tag, 0), "in the order of time")
            last[tag] = float(begin)
            values = decoded(packed)
            self.assertAlmostEqual(float(highest), max(values) / 1e6, 3)
            for value, count in values.items():
                sums[tag.removeprefix("Tag=")][value] += count
        return sums

    def test_counts_and_percentiles_are_those_of_the_report(self) -> None:
        for name in (MIXED, OPEN, ERRORS):
            sums = self.read(name)
            for key, kind in figures(name, "full").items():
                of = sums[f"{key.stage}/{key.kind}"]
                count = sum(of.values())
                self.assertEqual(count, kind["stage_total"]["ops_ok_count"], (name, key))
                self.assertEqual(
                    sum(sums[f"{key.stage}/{key.kind}/ttfb"].values()),
                    kind["ttfb_ns"]["samples_count"] + count - kind["latency_ns"]["samples_count"],
                )
                if count != kind["latency_ns"]["samples_count"]:
                    continue
                for percent, field in ((50, "p50"), (99, "p99")):
                    told = kind["latency_ns"][field]
                    rank, seen = math.ceil(percent / 100 * count), 0
                    for value in sorted(of):
                        seen += of[value]
                        if seen >= rank:
                            break
                    if told is not None:
                        # The report shows no percentile above the largest value.
                        self.assertEqual(min(value, kind["latency_ns"]["max"]), told, (name, key))

    def test_other_stages_have_tags_of_their_own(self) -> None:
        self.assertIn("prepare/PUT", self.read(MIXED))


def named(events: list[dict[str, Any]], what: str) -> dict[tuple[int, int], str]:
    """Return what processes or tracks are called."""
    return {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == what
    }


class Trace(unittest.TestCase):
    def trace(self, name: str) -> dict[str, Any]:
        return json.loads((PLACE / f"{name}.trace.json").read_text())

    def test_every_measured_operation_is_a_slice_on_a_track_of_its_worker(self) -> None:
        for name in (MIXED, OPEN, ERRORS):
            trace = self.trace(name)
            events = trace["traceEvents"]
            self.assertEqual({event["ph"] for event in events}, {"M", "X"})
            tracks = named(events, "thread_name")
            processes = {pid: name for (pid, _), name in named(events, "process_name").items()}
            found: dict[str, list] = defaultdict(list)
            for event in events:
                if event["ph"] == "X" and event["cat"] not in ("ttfb", "stage"):
                    self.assertRegex(tracks[event["pid"], event["tid"]], r"^worker \d+")
                    found[event["cat"]].append((event, processes[event["pid"]]))
            endpoints = set(report(name)["endpoints"])
            for key, kind in figures(name, "full").items():
                total = kind["stage_total"]
                of = found[key.kind]
                ok = [event for event, _ in of if event["args"]["outcome"] == "ok"]
                self.assertEqual(len(ok), total["ops_ok_count"], (name, key))
                self.assertEqual(len(of) - len(ok), total["ops_failed_count"], (name, key))
                self.assertLessEqual({host for _, host in of}, endpoints)
            self.assertEqual(
                trace["otherData"]["operations_count"], sum(len(of) for of in found.values())
            )

    def test_slices_of_a_track_are_apart_or_nested(self) -> None:
        for name in (MIXED, OPEN, ERRORS):
            by_track: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
            for event in self.trace(name)["traceEvents"]:
                if event["ph"] == "X":
                    begin = round(event["ts"] * 1_000)
                    end = begin + round(event["dur"] * 1_000)
                    by_track[event["pid"], event["tid"]].append((begin, end))
            self.assertGreater(len(by_track), 2)
            for slices in by_track.values():
                open_ends: list[int] = []
                for begin, end in sorted(slices, key=lambda each: (each[0], -each[1])):
                    while open_ends and open_ends[-1] <= begin:
                        open_ends.pop()
                    self.assertTrue(not open_ends or end <= open_ends[-1], (name, begin, end))
                    open_ends.append(end)

    def test_a_window_and_a_limit_are_kept(self) -> None:
        run = plimsoll_bench.load(PLACE / MIXED)
        trace = json.loads((PLACE / "window.trace.json").read_text())
        started = run.stages[1].started_ns
        begins = [
            event["ts"] * 1e3 - started
            for event in trace["traceEvents"]
            if event["ph"] == "X" and event["cat"] == "GET"
        ]
        self.assertTrue(all(100e6 - 1 <= begin < 300e6 + 1 for begin in begins))
        about = trace["otherData"]
        self.assertEqual(about["operations_count"], len(begins))
        self.assertEqual(about["operations_of_stages_count"], run.stages[1].ops_count)
        matching = [
            op
            for op in run.operations().to_pylist()
            if op["stage_kind"] == "measure"
            and op["kind"] == "GET"
            and 100e6 <= op["start_ns"] - started < 300e6
        ]
        self.assertEqual(len(begins), min(len(matching), 50))
        self.assertEqual(about["operations_beyond_limit_count"], len(matching) - len(begins))
