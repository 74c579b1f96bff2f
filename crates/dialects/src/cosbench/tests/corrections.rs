//! What is told of COSBench's mistakes, and that the document has it all.

use super::super::{keys, storage};
use super::*;

const DOCUMENT: &str = include_str!("../../../../../docs/coming-from-cosbench.md");

#[test]
fn each_is_a_sentence_and_stands_in_the_document() {
    let mut missing = Vec::new();
    for correction in CORRECTIONS {
        correction.assert_is_sentence();
        let row = format!("| {} | {} | {} |", correction.of, correction.there, correction.here);
        if !DOCUMENT.contains(&row) {
            missing.push(row);
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_document_has_every_key_attribute_and_storage() {
    let is_there = |name: &&str| DOCUMENT.contains(&format!("`{name}`"));
    let mut names: Vec<&str> = keys::WORK.to_vec();
    names.extend(keys::OPERATION);
    names.extend(storage::REFUSED.iter().map(|(kind, _)| *kind));
    for (element, kind) in keys::ACCESSES {
        names.push(kind);
        names.extend(keys::of_access(element, kind).unwrap().iter().map(|(key, _)| *key));
    }
    names.retain(|name| !is_there(name));
    names.dedup();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn a_workload_is_told_of_what_is_in_it() {
    let told =
        |text: &str| -> Vec<&str> { lowered(text).corrections.iter().map(|of| of.of).collect() };
    let read = of_works(&work("<operation type='read' config='containers=c(1);objects=c(1)'/>"));
    let always = [
        "no numbers",
        "reading",
        "throughput",
        "percentiles",
        "time line",
        "drivers",
        "waiting for drivers",
        "archive",
    ];
    assert_eq!(told(&read), always);
    let s3 = "<storage type='s3' config='endpoint=http://h'/>";
    let all = of_storage(
        s3,
        "<work name='m' workers='1' totalOps='9'><operation type='write' ratio='40' \
         config='containers=r(1,2);objects=s(1,2);sizes=h(1|2|3)KiB'/><operation type='delete' \
         ratio='40' \
         config='containers=c(1);objects=c(1)'/><operation type='list' ratio='20' \
         config='containers=c(1)'/></work>",
    );
    let told = told(&all);
    for of in [
        "delete",
        "errors",
        "retries",
        "totalOps, totalBytes",
        "s and r",
        "r in containers and objects",
        "h",
        "KiB, MiB, GiB",
        "content",
        "list",
        "S3 signatures",
    ] {
        assert!(told.contains(&of), "{of}: {told:?}");
    }
}
