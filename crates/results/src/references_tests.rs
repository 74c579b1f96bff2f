//! Records of version 1 give what is committed beside them.
#![expect(clippy::disallowed_methods, reason = "what is committed is held against them")]

use std::fs;

use plimsoll_report::text::{self, Look};

use crate::tests::testdata;
use crate::{Asked, Record};

/// Returns the report of a run as `plimsoll analyze` prints it in the directory of the runs.
fn reported(name: &str, asked: &Asked) -> String {
    let record = Record::open(&testdata(name)).unwrap();
    let mut report = record.report(asked).unwrap();
    report.run_directory = Some(name.to_owned());
    report.utc_offset_seconds = Some(0);
    text::render(&report, &Look { width: 100, color: false })
}

#[track_caller]
fn check(name: &str) {
    let details = Asked { details: true, ..Asked::default() };
    for (file, asked) in [("report.txt", Asked::default()), ("report-v.txt", details)] {
        let path = testdata(name).join(file);
        let text = reported(name, &asked);
        if !path.exists() {
            continue;
        }
        if std::env::var_os("PLIMSOLL_BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&path).unwrap(), "{}", path.display());
    }
}

#[test]
fn a_run_of_gets_is_as_it_was() {
    check("s3-get");
}

#[test]
fn a_run_of_several_kinds_is_as_it_was() {
    check("s3-mixed");
}

#[test]
fn a_run_of_uploads_in_parts_is_as_it_was() {
    check("s3-multipart");
}

#[test]
fn a_run_of_many_tests_is_as_it_was() {
    check("s3-benchmark");
}

#[test]
fn a_merged_run_on_objects_is_as_it_was() {
    check("s3-merged");
}

#[test]
fn a_suite_on_files_is_as_it_was() {
    check("file-suite");
}

#[test]
fn a_job_file_is_as_it_was() {
    check("fio-job");
}

#[test]
fn a_merged_run_on_files_is_as_it_was() {
    check("fio-merged");
}
