"""What the test that made the runs left for these tests."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

#: The root of the repository.
ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "docs" / "recipes"
#: Holds runs, and beside each NAME of them what `plimsoll analyze --json` says, in NAME.report.json
#: and of the whole span in NAME.full.json.
PLACE = Path(os.environ["PLIMSOLL_TEST_RUNS"])
#: What each of them is for.
MIXED, AFTER, OPEN, FILES, ERRORS, MERGED, STAGES, RAMPS = (
    "mixed",
    "after",
    "open",
    "files",
    "errors",
    "merged",
    "stages",
    "ramps",
)
#: One in which no operation succeeded.
FAILING = "failing"
ALL = (MIXED, AFTER, OPEN, FILES, ERRORS, MERGED, STAGES, RAMPS)


class Key(NamedTuple):
    """Which figures: of a stage, a row of it, and a kind."""

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
                    found[Key(stage["name"], row["name"], kind["kind"])] = kind
    assert found, name
    return found


def is_same_time(told_ns: float | None, found_ms: float) -> bool:
    """Tell whether a percentile is that of the report, whose bins are at most 0.1 % wide."""
    if told_ns is None:
        return True
    # The report shows the upper end of the bin.
    return 0 <= told_ns - found_ms * 1e6 + 0.5 <= told_ns * 0.001 + 1
