//! What weed benchmark does wrong and what is done instead.

use crate::correction::{Correction, correct};

/// Every correction, in the order of a run.
pub static CORRECTIONS: &[Correction] = &[
    correct(
        "masters",
        "where none answers, it waits without limit and without a word on stdout",
        "that is an error after the time limit for connecting",
    ),
    correct(
        "-n",
        "the help says files for each thread",
        "it is the number of files in all, as the program itself takes it",
    ),
    correct(
        "-size",
        "the help says mostly zeros, but the bytes are random from a seed that nobody knows",
        "the bytes are random, a function of the seed and the file, so that reads are checked",
    ),
    correct(
        "writing",
        "the first writes of a collection wait up to a second for volumes to be made, inside their \
         latency",
        "volumes are made before the first write, and waited for outside of any latency",
    ),
    correct(
        "writing",
        "an upload is tried three times with pauses of 474 and 711 ms, and an id for up to 30 s, \
         all of it one latency",
        "an attempt is an operation; nothing is retried",
    ),
    correct(
        "writing",
        "a failed upload is a sample of latency, a file without an id is none",
        "failures are counted by class, and latencies are those of successes",
    ),
    correct(
        "writing",
        "the server's 201 is trusted, also for a volume that is nowhere",
        "the CRC-32C in the answer is held against what was sent, and reading checks what is there",
    ),
    correct(
        "deletions",
        "they count as completed or failed requests, though not as bytes or latencies, and prolong \
         the time by a second or more",
        "they are counted and timed by themselves, in none of the requests, and what is left of \
         them when all is written is a stage of its own",
    ),
    correct(
        "reading",
        "neither content nor length is looked at",
        "every byte of what the run wrote is checked; of files from a list, the CRC-32C that the \
         server states",
    ),
    correct(
        "reading",
        "a volume that the master has not yet told of is a failure",
        "the master is asked where it is",
    ),
    correct(
        "reading, deletions",
        "with keys for tokens all of them fail: no token for reading is asked for, and that for \
         deleting is of the volume",
        "each has the token of its file",
    ),
    correct("reading", "loading the list is inside the measured time", "the list is read before"),
    correct(
        "reading",
        "empty lines and those with # use up one of the -n reads; a line that is no id is a failed \
         read",
        "the first are no reads, the second is refused by its number",
    ),
    correct(
        "-readSequentially",
        "the help says the reverse, the title says randomly, and progress shows -n as the total",
        "the title says sequentially, and the total is that of the list",
    ),
    correct(
        "-list",
        "one that is missing ends the program with a trace of its stack and code 255; an empty one \
         is a run without samples",
        "both are refused with a message",
    ),
    correct(
        "-list",
        "it is emptied when writing begins, and grows meanwhile",
        "it is replaced when writing and removing are over; whatever the run was given stands in \
         its record too",
    ),
    correct(
        "time",
        "latencies are cut into tenths of a millisecond and rounded down, so that the mean is \
         0.05 ms too small and reads take 0.0 ms",
        "smallest, mean and largest are exact, percentiles to 0.1 %, and finer than a tenth below \
         the report",
    ),
    correct(
        "counters",
        "all workers write them without locks, so that some operations are lost",
        "each thread has its own, and they must agree with the record",
    ),
    correct(
        "percentiles",
        "of lines with the same value only the first is printed, and 100% may be missing",
        "all nine are printed",
    ),
    correct(
        "no samples",
        "the smallest is 1000000.0, the mean NaN, and there are no percentiles",
        "what is not known is –",
    ),
    correct(
        "exit code",
        "it is 0, also where every request failed",
        "it is 1 where more than --max-error-rate failed, which is none unless set",
    ),
    correct(
        "failed files",
        "a line for each on stdout or stderr, between those of the report",
        "classes and counts below the report, and the first message as a warning",
    ),
    correct(
        "connections",
        "writing and reading have connections of their own, and each worker seven for deletions",
        "each server has one for each worker at most, during a stage",
    ),
    correct(
        "words",
        "one that is no flag hides all behind it; 010 is 8; -n 0 and -c 0 do nothing",
        "these are refused",
    ),
];
