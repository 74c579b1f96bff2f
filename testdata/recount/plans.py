"""Draws random workload files with scripts of stores, and runs them in virtual time.

    plans.py PROGRAM FOLDER FIRST COUNT

makes `FOLDER/NUMBER` of each plan from FIRST on, for `recount.py`. The same number always gives the
same plan.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

#: What a store does: every law that a script knows, and faults of every kind of answer.
SERVICES = [
    {"constant": "2ms"},
    {"exponential": {"mean": "3ms"}},
    {"uniform": {"from": "1ms", "to": "9ms"}},
    {"lognormal": {"median": "4ms", "sigma": 1.0}},
    {"bimodal": {"first": {"constant": "2ms"}, "second": {"constant": "400ms"}, "share": 0.98}},
]
FAULTS = ["slow_down", "reset", "half_body", "error_in_success", "silence"]


def plan(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the workload file and the script of the plan of this number."""
    rng = random.Random(f"plan {number}")
    on_files = rng.random() < 0.25
    script = _script(rng, on_files)
    size = rng.choice(["4KiB", {"uniform": "1KiB..64KiB"}, {"log_uniform": "1KiB..256KiB"}])
    sets = {"f": {"files": 4, "size": "1MiB"}} if on_files else {"o": {"count": 64, "size": size}}
    stages: list[dict[str, Any]] = []
    for number_of in range(rng.choice([1, 1, 2, 3])):
        # Stages of one name are a crossing of their own.
        name = f"main{number_of}" if rng.random() < 0.7 else "main"
        stage = _stage(rng, name, on_files, sets, number_of)
        repeat = {"times": 2, "stages": [stage]}
        stages.append({"repeat": repeat} if rng.random() < 0.2 else stage)
    file = {"schema": "plimsoll.workload/2", "name": f"plan-{number}", "seed": number}
    if on_files:
        file["targets"] = {"files": {"directory": "."}}
    jobs = [
        {"name": name, "workers": 4, "work": {"fill": name}}
        for name, of in sets.items()
        if "files" in of or "count" in of
    ]
    prepare = {"name": "prepare", "prepares": True, "jobs": jobs}
    return file | {"sets": sets, "stages": [prepare, *stages]}, script


def _script(rng: random.Random, on_files: bool) -> dict[str, Any]:
    script: dict[str, Any] = {
        "schema": "plimsoll.oracle/1",
        "service": {"time": rng.choice(SERVICES)},
    }
    if rng.random() < 0.3:
        script["servers"] = rng.choice([2, 4, 16])
    if rng.random() < 0.3:
        script["stalls"] = {"offset": f"{rng.randint(1, 4)}s", "every": "1h", "lasting": "1500ms"}
    if rng.random() < 0.2:
        script["brownouts"] = [{"from": "1s", "lasting": "2s", "factor": 10.0}]
    if rng.random() < 0.5:
        faults = ["io", "half_body"] if on_files else FAULTS
        shares = {fault: rng.choice([0.002, 0.02]) for fault in rng.sample(faults, 2)}
        script["faults"] = {"read" if on_files else "get": shares}
        script["grace_count"] = 80
    return script


def _stage(
    rng: random.Random, name: str, on_files: bool, sets: dict[str, Any], number: int
) -> dict[str, Any]:
    count = rng.choice([1, 1, 2, 3])
    group = {"group": 1} if count > 1 and rng.random() < 0.2 else {}
    lasts = rng.random() < 0.8
    jobs = []
    for job in range(count):
        written = f"w{number}-{job}"
        work = _blocks(rng) if on_files else {"objects": _mix(rng, written)}
        if written in str(work):
            sets[written] = {"size": rng.choice(["2KiB", {"uniform": "1KiB..9KiB"}])}
        if "delete" in str(work):
            sets[written]["count"] = 32
        jobs.append({"name": f"job{job}"} | group | _job(rng, lasts) | {"work": work})
    stage: dict[str, Any] = {"name": name, "jobs": jobs}
    if count == 1 and rng.random() < 0.15:
        steps = [{"40/s": "1s"}, {"200/s": "2s"}]
        arrivals = rng.choice(["constant", "poisson"])
        jobs[0] = {"name": "job0", "workers": 4, "work": jobs[0]["work"]}
        jobs[0]["pacing"] = {"open": {"steps": steps, "arrivals": arrivals}}
    elif lasts:
        stage["duration"] = f"{rng.randint(2, 6)}s"
    return stage


def _job(rng: random.Random, lasts: bool) -> dict[str, Any]:
    job: dict[str, Any] = {"workers": rng.choice([1, 2, 4, 8])}
    pacing = rng.choice(["closed", "closed", "capped", "open", "open"])
    if pacing == "capped":
        job["pacing"] = {"capped": f"{rng.choice([50, 300])}/s"}
    elif pacing == "open":
        laws = ["40/s", "250/s", "50/s..400/s over 3s", "50/s for 1s, 200/s for 1s, 100/s"]
        open_loop = {"rate": rng.choice(laws), "arrivals": rng.choice(["constant", "poisson"])}
        if rng.random() < 0.3:
            open_loop["max_in_flight"] = rng.choice([8, 16])
        job["pacing"] = {"open": open_loop}
    if not lasts or rng.random() < 0.2:
        job["ops"] = rng.choice([20, 400, {"each": 50}])
    if rng.random() < 0.3:
        job["ramp"] = rng.choice(["500ms", "1s"])
    if rng.random() < 0.2:
        job["start_delay"] = rng.choice(["300ms", "0s..800ms"])
    if rng.random() < 0.2:
        job["duration"] = f"{rng.randint(1, 3)}s"
    if rng.random() < 0.2 and (lasts or "duration" in job):
        job["ramp_down"] = "700ms"
    if rng.random() < 0.2 and pacing == "closed":
        job["think"] = {"pause": "2ms"}
    return job


def _mix(rng: random.Random, written: str) -> list[dict[str, Any]]:
    mixes = [
        [{"get": "o"}],
        [{"get": "o", "weight": 3}, {"stat": "o", "weight": 1}],
        [{"get": "o", "range": "1KiB"}, {"stat": "o"}, {"list": "o"}],
        [{"put": written}],
        [{"get": "o", "weight": 2}, {"put": written, "weight": 2}, {"delete": written}],
    ]
    return rng.choice(mixes)


def _blocks(rng: random.Random) -> dict[str, Any]:
    block = rng.choice(["4KiB", "16KiB"])
    return {"blocks": {"on": "f", "read": {"block": block}, "order": "uniform", "repeats": True}}


def measure(program: Path, place: Path, number: int) -> str | None:
    """Run a plan, and have its record analysed; return what went wrong."""
    place.mkdir(parents=True)
    file, script = plan(number)
    (place / "plan.json").write_text(json.dumps(file, indent=1))
    (place / "script.json").write_text(json.dumps(script, indent=1))
    words = ["run", "plan.json", "--virtual", "--script", "script.json", "--run-dir", "run"]
    for out, asked in (("live.json", words), ("report.json", ["analyze", "run"])):
        done = subprocess.run(
            [program, *asked, "--json"], cwd=place, capture_output=True, text=True, check=False
        )
        # 1: failures, or a schedule that was not kept.
        if done.returncode not in (0, 1) or not done.stdout:
            return f"{place}: {asked[0]} ended with {done.returncode}: {done.stderr}"
        (place / out).write_text(done.stdout)
    return None


def main() -> int:
    """Run all plans, as many at once as there are processors."""
    program, folder = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    first, count = map(int, sys.argv[3:])
    numbers = range(first, first + count)
    shutil.rmtree(folder, ignore_errors=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(lambda number: measure(program, folder / str(number), number), numbers)
        wrong = [sentence for sentence in done if sentence]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
