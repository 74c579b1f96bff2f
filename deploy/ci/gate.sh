#!/usr/bin/env bash
# Runs a benchmark a few times and judges it against a baseline, for the pipelines of CI systems:
#
#   GATES=$'p99<=+5%\nrate>=-3%' gate.sh s3 mixed --host store:9000 --duration 1m
#
# What it takes from the environment:
#   BEFORE        directory with the runs of the baseline [plimsoll-before]
#   AFTER         directory for the runs that it makes [plimsoll-after]
#   RUNS          how many it makes [3]
#   GATES         rules of `plimsoll compare`, one a line [none: it compares and judges nothing]
#   INCONCLUSIVE  `fail` if runs that are too few or too noisy to decide shall not pass [warn]
#
# It leaves plimsoll-comparison.md and plimsoll-gates.xml (JUnit) and exits as `plimsoll compare`
# does: 1 for a broken gate, 2 where it could not run. Without a baseline there is nothing to judge.
set -euo pipefail

before=${BEFORE:-plimsoll-before}
after=${AFTER:-plimsoll-after}

for ((run = 1; run <= ${RUNS:-3}; run++)); do
    plimsoll "$@" --run-dir "$after/$run"
done

if ! compgen -G "$before/*/run.json" >/dev/null; then
    echo "no baseline in $before: nothing to compare with yet" | tee plimsoll-comparison.md
    exit 0
fi

gates=()
while IFS= read -r rule; do
    if [[ -n ${rule//[[:space:]]/} ]]; then
        gates+=(--gate "$rule")
    fi
done <<<"${GATES:-}"
if ((${#gates[@]})); then
    gates+=(--junit plimsoll-gates.xml --overwrite)
fi

code=0
plimsoll compare "$before" "$after" "${gates[@]}" --markdown >plimsoll-comparison.md || code=$?
cat plimsoll-comparison.md
if ((code == 3)); then
    echo "inconclusive: more runs are needed (RUNS)" >&2
    if [[ ${INCONCLUSIVE:-warn} != fail ]]; then
        code=0
    fi
fi
exit "$code"
