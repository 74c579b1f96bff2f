"""Draws random workload files with scripts of stores, and runs them in virtual time.

    plans.py PROGRAM FOLDER FIRST COUNT

makes `FOLDER/NUMBER` of each plan from FIRST on, for `recount.py`: the run and what the program
says of it in each form, and of every fourth a second run, their comparison and their merge. The
same number always gives the same plan.
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

Json = dict[str, Any]
#: What a store does: serve alike, by every law that a script knows, and with tails that outlast
#: their stage.
SERVICES: list[Json] = [
    {"constant": "2ms"},
    {"exponential": {"mean": "3ms"}},
    {"uniform": {"from": "1ms", "to": "9ms"}},
    {"lognormal": {"median": "4ms", "sigma": 1.0}},
    {"bimodal": {"first": {"constant": "2ms"}, "second": {"constant": "400ms"}, "share": 0.98}},
    {"bimodal": {"first": {"constant": "2ms"}, "second": {"constant": "4s"}, "share": 0.98}},
]
STALL = {"every": "1h", "lasting": "1500ms"}
FAULTS = ["slow_down", "reset", "half_body", "error_in_success", "silence"]
SIZES = ["4KiB", {"uniform": "1KiB..64KiB"}, {"log_uniform": "1KiB..256KiB"}]
BLOCKS = ["4KiB", {"range": "4KiB..8KiB"}, {"range": "4KiB..16KiB"}]
ARRIVALS = ["constant", "poisson"]
RATES = ["40/s", "250/s", "50/s..400/s over 3s", "50/s for 1s, 200/s for 1s, 100/s"]
CAPS = [{"capped": "50/s"}, {"capped": "300/s"}, {"capped_each": {"read": "50/s", "write": "50/s"}}]
LIMITS = [{"ops": 20}, {"ops": 400}, {"ops": {"each": 50}}, {"bytes": "1MiB"}]


class Plan:
    """A workload file, the trace that it replays, and the script of its store."""

    def __init__(self, number: int) -> None:
        self.rng = random.Random(f"plan {number}")
        self.choice, self.sets, self.trace = self.rng.choice, {}, ""
        kinds = {"objects": 10, "blocks": 5, "names": 1, "replay": 2, "search": 1, "until": 1}
        [self.kind] = self.rng.choices(list(kinds), list(kinds.values()))
        self.on_files = self.kind in ("blocks", "names")
        stages = getattr(self, self.kind)()
        fills = [{"name": name, "workers": 4, "work": {"fill": name}}
                 for name, of in self.sets.items() if {"count", "files", "trace"} & of.keys()]
        prepare = [{"name": "prepare", "prepares": True, "jobs": fills}] if fills else []
        self.file: Json = {"schema": "plimsoll.workload/2", "name": f"plan-{number}"}
        self.file |= {"seed": number, "sets": self.sets, "stages": prepare + stages}
        self.file |= {"targets": {"files": {"directory": "."}}} if self.on_files else {}

    def some(self, share: float, of: Any) -> Any:
        """Return fields or stages at times, and otherwise none."""
        return of if self.rng.random() < share else type(of)()

    def script(self) -> Json:
        """Return what the store does. A search for a load line needs one that has a line."""
        script: Json = {"schema": "plimsoll.oracle/1"}
        searched = self.kind == "search"
        script["service"] = {"time": self.choice(SERVICES[:3] if searched else SERVICES)}
        script |= self.some(1.0 if searched else 0.3, {"servers": self.choice([2, 4, 16])})
        if searched or self.some(0.12, "plain"):
            return script if searched else script | {"service": {"time": SERVICES[0]}}
        script |= self.some(0.3, {"stalls": STALL | {"offset": f"{self.rng.randint(1, 4)}s"}})
        script |= self.some(0.2, {"brownouts": [{"from": "1s", "lasting": "2s", "factor": 10.0}]})
        faults = self.rng.sample(["io", "half_body"] if self.on_files else FAULTS, 2)
        shares = {fault: self.choice([0.002, 0.02, 0.1]) for fault in faults}
        kind = "read" if self.on_files else "get"
        return script | self.some(0.5, {"faults": {kind: shares}, "grace_count": 80})

    def names(self) -> list[Json]:
        """A tree, of which each entry is made, looked at and removed."""
        self.sets["t"] = {"tree": {"depth": 1, "branching": 3, "entries": 100}}
        job = {"name": "job0", "workers": self.choice([1, 2, 4])}
        job |= self.some(0.3, {"pacing": {"capped": "300/s"}})
        create = {"create": "t", "bytes": "4KiB"}
        return [{"name": f"names{number}", "jobs": [job | {"work": {"names": work}}]}
                for number, work in enumerate([{"make_tree": "t"}, create, {"stat": "t"},
                                               {"remove": "t"}])]

    def replay(self) -> list[Json]:
        """Some seconds of operations on few objects, spread or in bursts."""
        step, count, lines = self.choice([1, 10, 1_000]), self.choice([50, 600]), []
        for at in sorted(self.rng.randrange(0, 4_000, step) for _ in range(count)):
            kind = self.rng.choices(["get", "put", "stat"], [6, 3, 1])[0]
            lines.append(f"{at},{kind},k{self.rng.randrange(20)},2000\n")
        self.trace = "".join(["time_ms,op,key,size\n", *lines])
        self.sets["t"] = {"trace": {"file": "trace.csv"}}
        how: Json = {"of": "t"} | self.choice([{}, {"speed": 2.0}, {"closed": True}])
        job = {"name": "job0", "workers": self.choice([1, 4]), "work": {"replay": how}}
        return [{"name": "main", "jobs": [job]}]

    def search(self) -> list[Json]:
        self.sets["o"] = {"count": 64, "size": "4KiB"}
        job = {"name": "job0", "workers": 8, "work": {"objects": [{"get": "o"}]}}
        search: Json = {"rate": "50/s..5000/s", "slo": ["p99<=40ms", "errors<=0.1%"]}
        search |= {"budget": "20s", "stage": {"jobs": [job]}}
        return [{"name": "line", "search": search}]

    def until(self) -> list[Json]:
        """A stage that a rule ends."""
        self.sets["o"] = {"count": 64, "size": "4KiB"}
        jobs = [{"name": f"job{job}", "workers": 4, "work": {"objects": [{"get": "o"}]}}
                for job in range(self.choice([1, 2]))]
        jobs[0] |= self.some(0.5, {"pacing": {"open": {"rate": "250/s", "arrivals": "poisson"}}})
        return [{"name": "main", "duration": "20s", "until": ["ci(p50)<=90%"], "jobs": jobs}]

    def objects(self) -> list[Json]:
        """One to three stages of one to three jobs, on objects or on blocks of files."""
        if self.on_files:
            self.sets["f"] = {"files": 4, "size": "1MiB"}
        else:
            self.sets["o"] = {"count": 64, "size": self.choice(SIZES)}
            self.sets["o"] |= self.some(0.3, {"keys": {"buckets": 4}})
        stages = []
        for number in range(self.choice([1, 1, 2, 3])):
            # Stages of one name are a crossing of their own.
            stage = self.stage(number) | {"name": f"main{self.some(0.6, str(number))}"}
            again = self.some(0.2, [stage]) if "batch" not in str(stage) else []
            stages.append({"repeat": {"times": 2, "stages": again}} if again else stage)
        return stages

    blocks = objects

    def stage(self, number: int) -> Json:
        count, jobs = self.choice([1, 1, 2, 3]), list[Json]()
        group = self.some(0.2 if count > 1 else 0.0, {"group": 1})
        limits = self.some(0.8, {"duration": f"{self.rng.randint(2, 6)}s"})
        limits |= self.some(0.1, {"ops": 300})
        for job in range(count):
            work = (self.block if self.on_files else self.mix)(f"w{number}-{job}")
            head = {"name": f"job{job}", "workers": self.choice([1, 2, 4, 8])} | group
            # What removes a set ends with it.
            ends = "batch" in str(work)
            jobs.append(head | ({} if ends else self.how("duration" in limits, bool(group)))
                        | {"work": work})
        if count == 1 and "batch" not in str(jobs) and self.some(0.15, "steps"):
            steps = {"steps": [{"40/s": "1s"}, {"200/s": "2s"}], "arrivals": self.choice(ARRIVALS)}
            job = {"name": "job0", "workers": 4, "work": jobs[0]["work"]}
            return {"jobs": [job | {"pacing": {"open": steps}}]}
        return {"jobs": jobs} | limits

    def how(self, lasts: bool, is_grouped: bool) -> Json:
        """Return how a job is paced, and when it begins and ends."""
        choice, job = self.choice, {}
        pacing = choice(["closed", "closed", "capped", "open", "open"])
        loop = {"rate": choice(RATES), "arrivals": choice(ARRIVALS)}
        loop |= self.some(0.3, {"max_in_flight": choice([8, 16])})
        if pacing == "closed":
            job |= self.some(0.2, {"think": {"pause": "2ms"}})
        else:
            job["pacing"] = choice(CAPS) if pacing == "capped" else {"open": loop}
        job |= self.some(0.2 if lasts else 1.0, choice(LIMITS))
        job |= self.some(0.3, {"ramp": choice(["500ms", "1s", "3s"])})
        # When a worker of a schedule began only the seed knows.
        delay = choice(["1s", "0s..800ms"]) if pacing == "closed" else "300ms"
        job |= self.some(0.2, {"start_delay": delay})
        job |= self.some(0.2, {"duration": f"{self.rng.randint(1, 3)}s"})
        if lasts or "duration" in job:
            job |= self.some(0.2, {"ramp_down": choice(["700ms", "2s"])})
        most = {"max_error_rate": choice(["2%", "100%"])}
        return job | self.some(0.0 if is_grouped else 0.2, most)

    def mix(self, written: str) -> Json:
        mix = self.choice([
            [{"get": "o"}],
            [{"get": "o", "weight": 3}, {"stat": "o", "weight": 1}],
            [{"get": "o", "range": "1KiB"}, {"stat": "o"}, {"list": "o"}],
            [{"put": written}],
            [{"get": "o", "weight": 2}, {"put": written, "weight": 2}, {"delete": written}],
            [{"delete": written, "batch": 7}],
        ])
        if written in str(mix):
            self.sets[written] = {"size": self.choice(["2KiB", {"uniform": "1KiB..9KiB"}])}
        if "batch" in str(mix):
            self.sets[written] |= {"count": 400, "keys": {"buckets": self.choice([1, 4])}}
        elif "delete" in str(mix):
            self.sets[written]["count"] = 32
        return {"objects": mix}

    def block(self, written: str) -> Json:
        blocks = {"on": "f", "read": {"block": self.choice(BLOCKS)}, "order": "uniform"}
        own = self.some(0.4, {"on": written, "write": {"block": "4KiB"}})
        if own:
            self.sets[written] = {"files": 2, "size": "1MiB"}
        return {"blocks": blocks | own | {"repeats": True}}


def measure(program: Path, place: Path, number: int) -> str | None:
    """Run a plan, and have its record told in every form; return what went wrong."""
    place.mkdir(parents=True)
    plan = Plan(number)
    (place / "plan.json").write_text(json.dumps(plan.file, indent=1))
    (place / "script.json").write_text(json.dumps(plan.script(), indent=1))
    (place / "trace.csv").write_text(plan.trace)
    run = "run plan.json --virtual --script script.json --json --run-dir"
    asked = {"live.json": f"{run} run", "report.json": "analyze run --json"}
    asked |= {"report.txt": "analyze run", "ops.csv": "export run --format csv --output -"}
    asked |= {"bencher.json": "export run --format bencher --output -"}
    asked |= {"page.html": "report run --output -", "warp.json": "as warp analyze --json run"}
    if number % 4 == 0:
        asked["other.json"] = f"{run} other --seed {number + 1_000_000}"
        asked["compare.json"] = "compare run other --json"
        asked["merge.json"] = "merge run other --output merged --json"
    exits = {}
    for out, words in asked.items():
        done = subprocess.run([program, *words.split()], cwd=place, capture_output=True, text=True,
                              check=False)
        exits[out] = done.returncode
        (place / out).write_text(done.stdout)
        # 1: failures, or a schedule that was not kept. 2: nothing to compare, to merge, or to show.
        if done.returncode > (2 if out in ("compare.json", "merge.json", "warp.json") else 1):
            return f"{place}: `{words}` ended with {done.returncode}: {done.stderr}"
    (place / "exits.json").write_text(json.dumps(exits))
    return None


def main() -> int:
    """Run all plans, as many at once as there are processors."""
    program, folder = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    first, count = map(int, sys.argv[3:])
    shutil.rmtree(folder, ignore_errors=True)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        done = pool.map(lambda number: measure(program, folder / str(number), number),
                        range(first, first + count))
        wrong = [sentence for sentence in done if sentence]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
