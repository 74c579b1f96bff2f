#!/usr/bin/env bash
# Runs a benchmark a few times and judges it against a baseline, for the pipelines of CI systems:
#
#   GATES=$'p99<=+5%\nrate>=-3%' gate.sh s3 mixed --host store:9000 --duration 1m
#
# What it takes from the environment:
#   BEFORE        directory with the runs of the baseline [plimsoll-before]
#   AFTER         directory for the runs that it makes; runs of an earlier job that lie there are
#                 removed first, and anything else there is refused [plimsoll-after]
#   RUNS          how many it makes [3]
#   GATES         rules of `plimsoll compare`, one a line [none: it compares and judges nothing]
#   COMMAND       what to run where the command line names nothing: words, in quotes where they hold
#                 blanks; no shell expands or runs any of it
#   INCONCLUSIVE  `fail` if runs that are too few or too noisy to decide shall not pass, else `warn`
#                 [warn]
#
# It leaves plimsoll-comparison.md and plimsoll-gates.xml (JUnit) and exits as `plimsoll compare`
# does: 1 for a broken gate, 2 where it could not run. Without a baseline there is nothing to judge.
set -euo pipefail

before=${BEFORE:-plimsoll-before}
after=${AFTER:-plimsoll-after}
runs=${RUNS:-3}

refuse() {
    echo "gate.sh: $1" >&2
    exit 2
}

# Whether a path is a run as this script makes them: its number, and the name of its format.
is_run() {
    [[ ${1##*/} =~ ^[1-9][0-9]*$ && -d $1 && ! -L $1 ]] &&
        grep -qs '"schema": *"plimsoll\.run/' "$1/run.json"
}

# Removes the runs of an earlier job: CI systems keep their working directories.
empty_after() {
    [[ -e $after || -L $after ]] || return 0
    [[ -d $after && ! -L $after ]] || refuse "$after (AFTER) is no directory"
    [[ ! $after -ef $before ]] || refuse "BEFORE and AFTER are the same directory, $after"
    local found
    local -a old=()
    shopt -s nullglob dotglob
    for found in "$after"/*; do
        is_run "$found" ||
            refuse "$found is no run of an earlier job, so $after (AFTER) is left as it is"
        old+=("$found")
    done
    shopt -u nullglob dotglob
    ((${#old[@]} == 0)) || rm -rf -- "${old[@]}"
}

# What can be wrong is found before the first run. (A text in `((…))` would be carried out.)
command -v plimsoll >/dev/null || refuse "plimsoll is not on PATH"
[[ $runs =~ ^[1-9][0-9]{0,3}$ ]] || refuse "RUNS is \`$runs\`: give a number from 1 to 9999"
case ${INCONCLUSIVE:-warn} in
    warn | fail) ;;
    *) refuse "INCONCLUSIVE is \`$INCONCLUSIVE\`: give warn or fail" ;;
esac
if (($# == 0)); then
    line=${COMMAND:-}
    [[ -n ${line//[[:space:]]/} ]] || refuse "nothing to run: give s3 mixed --host …, or COMMAND"
    words=$(xargs printf '%s\n' <<<"$line") || refuse "COMMAND cannot be taken apart into words"
    command=()
    while IFS= read -r word; do
        command+=("$word")
    done <<<"$words"
    set -- "${command[@]}"
fi
gates=()
while IFS= read -r rule; do
    if [[ -n ${rule//[[:space:]]/} ]]; then
        gates+=(--gate "$rule")
    fi
done <<<"${GATES:-}"
if ((${#gates[@]})); then
    plimsoll compare --check-gates "${gates[@]}"
    gates+=(--junit plimsoll-gates.xml --overwrite)
fi

empty_after
rm -f -- plimsoll-comparison.md plimsoll-gates.xml
for ((run = 1; run <= runs; run++)); do
    plimsoll "$@" --run-dir "$after/$run"
done

if ! compgen -G "$before/*/run.json" >/dev/null; then
    echo "no baseline in $before: nothing to compare with yet" | tee plimsoll-comparison.md
    exit 0
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
