#!/usr/bin/env bash
# Makes one benchmark of the machines that ssh reaches: starts a fleet here and an agent on each
# host, and ends them all when it ends itself.
set -euo pipefail
umask 077

usage() {
    cat <<'TEXT'
usage: fleet.sh [--FLAG=VALUE...] HOST... [-- COMMAND...]

Starts `plimsoll fleet up` here and, by ssh, an agent on each HOST ([USER@]NAME; the agent is called
NAME). With COMMAND, such as

  fleet.sh node1 node2 -- plimsoll s3 get --host store:9000 --fleet --agents 2

it runs that and ends; without, it stays until Ctrl-C, and COMMAND goes into another terminal.
Flags go to `plimsoll fleet up`: --advertise=ADDRESS if hosts do not know this machine by its name.

  PLIMSOLL        the program here [plimsoll]
  PLIMSOLL_THERE  the program on the hosts [plimsoll]

ssh must get in without asking: keys or an agent. The login shell there must know sh's grammar; the
one here is bash 4.4 or newer.
TEXT
}

flags=() hosts=() command=()
while (($#)); do
    case $1 in
        --) command=("${@:2}"); break ;;
        -h | --help) usage; exit 0 ;;
        --?*=*) flags+=("$1") ;;
        -* | '') usage >&2; exit 2 ;;
        *) hosts+=("$1") ;;
    esac
    shift
done
if ((${#hosts[@]} == 0)); then
    usage >&2
    exit 2
fi

work=$(mktemp -d)
fleet='' agents=() lifelines=()

finish() {
    # A second Ctrl-C must not leave an agent behind.
    trap '' INT TERM HUP
    trap - EXIT
    for lifeline in "${lifelines[@]}"; do
        exec {lifeline}>&-
    done
    # Before the fleet, so that agents can still say goodbye to it.
    if ((${#agents[@]})); then
        { sleep 20; echo 'fleet.sh: an agent does not end' >&2; kill "${agents[@]}"; } &
        local patience=$!
        wait "${agents[@]}" 2>/dev/null || true
        # It ignores the signals that are ignored here.
        kill -KILL -- "-$patience" 2>/dev/null || true
    fi
    if [[ $fleet ]]; then
        kill -INT "$fleet" 2>/dev/null || true
        wait "$fleet" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Jobs get process groups of their own: Ctrl-C is for COMMAND, which still needs the fleet when it
# ends its run.
set -m

mkfifo "$work/said"
"${PLIMSOLL:-plimsoll}" fleet up "${flags[@]}" >"$work/said" </dev/null &
fleet=$!
# It says the line for agents: `PLIMSOLL_JOIN=TOKEN plimsoll agent`.
IFS= read -r line <"$work/said" || exit 2
token=${line#*=}
token=${token%% *}

# Says what runs on a host for the agent NAME. The token comes by the standard input and goes into
# the environment, which only the same user can read; everybody sees a command line. When the input
# ends, because this script has ended in whatever way, so does the agent.
there() {
    printf 'program=%q name=%q\n' "${PLIMSOLL_THERE:-plimsoll}" "$1"
    cat <<'TEXT'
IFS= read -r PLIMSOLL_JOIN && export PLIMSOLL_JOIN || exit
exec 3<&0 </dev/null
"$program" agent --name "$name" 3<&- &
agent=$!
unset PLIMSOLL_JOIN
{ cat <&3; kill $agent; } >/dev/null 2>&1 &
watch=$!
wait $agent
status=$?
# It must not end whoever gets the agent's number next.
kill $watch 2>/dev/null
exit $status
TEXT
}

prefixed() {
    local line
    while IFS= read -r line; do
        printf '%s: %s\n' "$1" "$line" >&2
    done
}

for host in "${hosts[@]}"; do
    name=${host##*@}
    pipe=$work/agent-${#agents[@]}
    mkfifo "$pipe"
    # Both ways, as opening one end waits for the other.
    exec {lifeline}<>"$pipe"
    lifelines+=("$lifeline")
    # A builtin: no command line has the token here either.
    printf '%s\n' "$token" >&"$lifeline"
    (
        # An end that is open here would keep agents alive.
        for lifeline in "${lifelines[@]}"; do
            exec {lifeline}>&-
        done
        exec ssh -T -o BatchMode=yes -o ServerAliveInterval=5 -- \
            "$host" "$(there "$name")" > >(prefixed "$name") 2>&1
    ) <"$pipe" &
    agents+=($!)
done

if ((${#command[@]})); then
    "${command[@]}"
else
    wait "$fleet"
fi
