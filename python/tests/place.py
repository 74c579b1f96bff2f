"""What the test that made the runs left for these tests."""

import json
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import plimsoll_bench

#: The root of the repository.
ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "docs" / "recipes"
#: Holds runs, and beside each NAME of them what `plimsoll analyze --json` says, in NAME.report.json
#: and of the whole span in NAME.full.json.
PLACE = Path(os.environ["PLIMSOLL_TEST_RUNS"])
#: What each of them is for.
MIXED, AFTER, OPEN, FILES, ERRORS, MERGED, STAGES, RAMPS, APART = (
    "mixed",
    "after",
    "open",
    "files",
    "errors",
    "merged",
    "stages",
    "ramps",
    "apart",
)
#: One in which no operation succeeded.
FAILING = "failing"
ALL = (MIXED, AFTER, OPEN, FILES, ERRORS, MERGED, STAGES, RAMPS, APART)


class Key(NamedTuple):
    """Which figures: of a stage, a row of it, and a kind.

    The second stage of one name is `main #2`, as in the report.
    """

    stage: str
    row: str
    kind: str


def report(name: str, which: str = "report") -> dict[str, Any]:
    """Return what the program says of a run."""
    return json.loads((PLACE / f"{name}.{which}.json").read_text())


def figures(name: str, which: str = "report") -> dict[Key, dict[str, Any]]:
    """Return the figures of each kind in the measured stages."""
    found = {}
    for stage in report(name, which)["stages"]:
        if stage["is_result"]:
            for row in stage["rows"]:
                for kind in row["kinds"]:
                    title = numbered(stage["name"], stage.get("title_number", 1))
                    found[Key(title, row["name"], kind["kind"])] = kind
    assert found, name
    return found


def numbered(stage: str, number: int) -> str:
    """Return what a stage is called that is the number-th of its name."""
    return stage if number == 1 else f"{stage} #{number}"


def titles(name: str) -> dict[int, str]:
    """Return what each measured stage of a run is called in the report, by its index."""
    stages = [stage for stage in report(name)["stages"] if stage["is_result"]]
    indices = [stage.index for stage in plimsoll_bench.load(PLACE / name).stages if stage.is_measured]
    numbers = [stage.get("title_number", 1) for stage in stages]
    told = [numbered(stage["name"], number) for stage, number in zip(stages, numbers, strict=True)]
    return dict(zip(indices, told, strict=True))


def is_same_time(told_ns: float | None, found_ms: float | None) -> bool:
    """Tell whether a percentile is that of the report, whose bins are at most 0.1 % wide.

    Of too few operations neither has one.
    """
    if found_ms is None or math.isnan(found_ms):
        return told_ns is None
    if told_ns is None:
        return False
    # The report shows the upper end of the bin.
    return 0 <= told_ns - found_ms * 1e6 + 0.5 <= told_ns * 0.001 + 1
