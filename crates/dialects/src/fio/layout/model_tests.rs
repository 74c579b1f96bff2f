//! A strict model of fio's text takes what fio printed and what we print, and nothing else.

use plimsoll_testkit::grammar::{accept, fio_clients_text, fio_text, refuse_mutations};

use super::normal;
use super::samples::{CLIENTS_TEXT, Document, MIXED_JSON, ONLY_JSON, PAIR_JSON, TEXTS};
use super::{FioRun, FioSection};

/// Returns the texts in which fio names what it was told and what it found.
fn free(text: &str) -> Vec<&str> {
    let names = text.lines().filter_map(|line| Some(line.split_once(": (g")?.0));
    names.chain(["fio-3.33", "vda", "a deep queue"]).collect()
}

/// Those that are changed, place by place.
const MUTATED: [&str; 2] = [TEXTS[0], TEXTS[2]];
/// What a run need not have, and what it may have several of; all else is refused.
const FREE: [(&str, &str); 31] = [
    // Names are anyone's.
    ("something before", "mix: "),
    ("something before", "deep: "),
    ("something before", "a: "),
    ("something before", "b: "),
    // As many jobs and files as there are.
    ("missing", "mix: "),
    ("missing", "deep: "),
    ("missing", "a: Laying"),
    ("missing", "b: "),
    ("missing", "a: (g="),
    ("missing", "..."),
    ("doubled", "mix: (g="),
    ("doubled", "mix: Laying"),
    ("doubled", "deep: (g="),
    ("doubled", "deep: Laying"),
    ("doubled", "a: (g="),
    ("doubled", "a: Laying"),
    ("doubled", "b: (g="),
    ("doubled", "b: Laying"),
    ("exchanged", "mix: (g="),
    ("exchanged", "mix: Laying"),
    ("exchanged", "a: Laying"),
    ("exchanged", "a: (g="),
    ("exchanged", "b: (g="),
    ("doubled", "  vda"),
    // A group that read or wrote nothing.
    ("missing", "   READ"),
    ("missing", "  WRITE"),
    ("missing", "  Description"),
    // Where nothing was read or fell into a cell, and of engines that do not tell.
    ("missing", "     |"),
    ("missing", "  lat ("),
    ("missing", "  IO depths"),
    ("missing", "    slat"),
];

#[test]
fn the_model_takes_what_fio_printed_and_nothing_else() {
    let mut refused = 0;
    TEXTS.iter().for_each(|text| accept(&fio_text(), text));
    for text in MUTATED {
        refused += refuse_mutations(&fio_text(), text, &free(text), &FREE);
    }
    assert!(refused > 2_000, "{refused}");
}

#[test]
fn what_fio_printed_of_clients_is_in_the_model() {
    let shown = CLIENTS_TEXT.lines().filter(|line| !line.starts_with("Jobs: "));
    let shown: String = shown.map(|line| format!("{line}\n")).collect();
    accept(&fio_clients_text(), &shown);
}

#[test]
fn what_we_print_is_in_the_model() {
    for json in [PAIR_JSON, ONLY_JSON, MIXED_JSON] {
        let document = Document::parse(json);
        let histograms = document.histograms();
        let section = FioSection {
            name: "mix".to_owned(),
            group: 0,
            clones: 2,
            rw: "randrw".to_owned(),
            block_bytes: [(4096, 16_384); 3],
            engine: "psync".to_owned(),
            depth: 1,
        };
        let mut run = FioRun { sections: vec![section], ..document.run(&histograms) };
        run.version = "plimsoll-0.1.0".to_owned();
        accept(&fio_text(), &normal(&run));
        // An engine of which it is not known how many operations a call took.
        for record in &mut run.records {
            (record.depths.submit, record.depths.complete) = (None, None);
            (record.error, record.errors_count) = (5, 3);
        }
        accept(&fio_text(), &normal(&run));
    }
}
