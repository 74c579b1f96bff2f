//! What s3-benchmark does wrong and what is done instead.

use crate::correction::{Correction, correct};

/// Every correction, in the order of a run.
pub static CORRECTIONS: &[Correction] = &[
    correct(
        "bucket",
        "everything in it is deleted before the first test, whoever wrote it",
        "nothing is: the run writes below `plimsoll/<run>/` and removes that at the end, outside of \
         the measured time",
    ),
    correct(
        "bucket",
        "one that cannot be made is a warning, one that cannot list versions ends the program",
        "one that cannot be used is refused; versions are asked for by LISTver alone",
    ),
    correct(
        "keys",
        "they are Object-1, Object-2, ..., and a 503 hands a number out twice and skips another",
        "they are named after loop, worker and number below the run's prefix, each once",
    ),
    correct(
        "content",
        "all objects hold the same bytes, which a store need keep once only",
        "each has content of its own, a function of the seed and its key",
    ),
    correct(
        "PUT",
        "an answer that is neither 200 nor 503 counts as an object",
        "it is a failed operation and no object",
    ),
    correct(
        "PUT",
        "each carries a Content-MD5, worked out once for all",
        "none does unless --md5 asks for it, as that of content of its own falls into the measured \
         time",
    ),
    correct(
        "GET",
        "any answer but 503 counts as an object of full size, a 404 too",
        "only a 200 with the whole object counts, and every byte is checked; bytes are those that \
         came",
    ),
    correct(
        "GET",
        "the key is drawn from 1 to the number of GETs so far",
        "it is drawn evenly from the objects that PUT wrote",
    ),
    correct(
        "LIST2, LISTver",
        "the token of a walk goes on into other prefixes, so that most pages are of no prefix asked \
         for",
        "each operation lists one prefix of the run that fits on one page of 1000, so that no token \
         is needed",
    ),
    correct(
        "LIST2, LISTver",
        "prefixes Object-0 to Object-99 with eight delimiters in turn",
        "prefixes drawn evenly, about a hundred of them, without delimiters",
    ),
    correct(
        "LIST2, LISTver",
        "what a page holds is not looked at",
        "it must hold the keys that PUT wrote below that prefix, no more and no less",
    ),
    correct(
        "LIST2, LISTver",
        "any error counts as a slowdown, after up to three hidden retries inside the time",
        "nothing is retried; an error is a failed operation, and a slowdown only as 503 or 429",
    ),
    correct(
        "LISTver",
        "marks of deletion are no rows, and stores that leave out an empty KeyMarker get no second \
         page",
        "each entry is a row; no page has a second",
    ),
    correct(
        "LISTver",
        "a store without it cannot be tested at all",
        "one that says so (501) has the line `LISTver not offered`, and the other tests are done",
    ),
    correct(
        "DELETE",
        "it counts all objects, whatever the store answered; a 503 skips an object and deletes its \
         neighbour twice",
        "each object is deleted once, in seeded order; what failed is no delete, and is removed at \
         the end",
    ),
    correct(
        "loops",
        "figures of LIST2 and LISTver add up over the loops and are divided by the last one's time",
        "each loop has counters of its own",
    ),
    correct(
        "slowdowns",
        "a 503 is taken off a counter that other goroutines read",
        "they are the answers 503 and 429 of that test, which are failed operations too",
    ),
    correct(
        "errors",
        "the first transport error ends the program without a line, and each error answer with a \
         body leaks a connection",
        "errors end nothing: they are counted by class, and latencies are those of successes",
    ),
    correct(
        "time",
        "operations have no time limit, and finish times are written without locks",
        "an operation is given up after --op-timeout (2m); the time is from the start to the end of \
         the last operation, which begins before -d is over, as there",
    ),
    correct(
        "signature",
        "Version 2, for the bucket Version 4",
        "Version 4, or Version 2 with `--signature S3V2`",
    ),
    correct("TLS", "certificates are not looked at", "they are checked unless --insecure is given"),
    correct(
        "-u",
        "a trailing slash is doubled in every path",
        "it is left out of the paths; a path behind the host is refused",
    ),
    correct(
        "-d, -l, -t",
        "0 ends in a panic or does nothing; 010 is 8; a word that is no flag hides all behind it",
        "these are refused",
    ),
];
