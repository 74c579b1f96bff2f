//! Traces from files, and what is said of them.

use std::path::PathBuf;

use plimsoll_foreign::trace::Format;
use plimsoll_workload::plan::spec::TRACE_FORMATS;

use super::*;

fn file(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn of(path: &Path) -> TraceOf {
    TraceOf::file(path.display().to_string())
}

#[test]
fn the_language_knows_every_form_and_the_records_of_runs() {
    let read: Vec<&str> = Format::ALL.iter().map(|format| format.name()).chain([OF_RUN]).collect();
    assert_eq!(read, TRACE_FORMATS);
}

#[test]
fn of_a_trace_of_others_not_more_lines_are_read_than_memory_has_room_for() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("time_ms,op,key,size\n{}", "1,get,k,10\n".repeat(1_001));
    let path = file(folder.path(), "t.csv", text.as_bytes());
    let allowed = AllowedDirs::only(&[folder.path().to_owned()]).unwrap();
    let refused = Traces::within(allowed).read(&of(&path)).unwrap_err().to_string();
    assert!(refused.ends_with("at most 1000 lines of a trace are read here"), "{refused}");
    assert_eq!(Traces::default().read(&of(&path)).unwrap().ops().len(), 1_001);
}

#[test]
fn a_trace_is_read_once_and_what_it_lacks_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("time_ms,op,key,size\n");
    for number in 0..40 {
        text.push_str(&format!("{number},get,k{},10\n", number % 3));
    }
    text.push_str("x,get,k,10\n41,copy,k,10\n");
    let path = file(folder.path(), "t.csv", text.as_bytes());
    let mut traces = Traces::default();
    let trace = traces.read(&of(&path)).unwrap();
    assert_eq!((trace.ops().len(), trace.made_first()), (40, &[10, 10, 10][..]));
    let notes = trace.facts.notes();
    assert!(
        notes.contains(
            &"1 line could not be read and was left out, line 42: `x` is not a time".to_owned()
        ),
        "{notes:?}"
    );
    assert!(notes.iter().any(|note| note.contains("not replayed: 1 copy")), "{notes:?}");
    std::fs::remove_file(&path).unwrap();
    assert!(Arc::ptr_eq(&trace, &traces.read(&of(&path)).unwrap()), "it was read before");
}

#[test]
fn what_is_no_trace_is_refused_with_its_file_and_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |of: &TraceOf| Traces::default().read(of).unwrap_err().to_string();
    let cases: [(&str, &[u8], &str); 5] = [
        ("empty", b"", ": it is empty"),
        ("a.gz", &[0x1f, 0x8b, 8], ": it is compressed with gzip"),
        ("a.csv", b"time,op,key\n-1,get,a\nNaN,get,b\n", ", line 2: `-1` is not a time (2 of 2"),
        ("none.csv", b"time,op,key\n1,copy,a\n", ": it holds no operation that can be replayed"),
        (
            "far.csv",
            b"time,op,key,offset,length\n1,get,a,18446744073709551615,9\n",
            ", line 2: 9 bytes",
        ),
    ];
    for (name, content, expected) in cases {
        let path = file(folder.path(), name, content);
        let said = refused(&of(&path));
        assert!(said.starts_with(&format!("{}{expected}", path.display())), "{said}");
    }
    let said = refused(&of(folder.path()));
    assert!(said.contains("holds no run.json"), "{said}");
    let path = file(folder.path(), "b.csv", b"op,key\nput,a\n");
    let form = |format: &str| TraceOf { format: Some(format.to_owned()), ..of(&path) };
    assert!(refused(&form("plimsoll")).ends_with("b.csv is not a directory of a run"));
    assert!(refused(&form("fio-iolog")).contains(": line 1: it is not a fio iolog"));
    let missing = TraceOf::file("/nowhere/at/all".to_owned());
    assert_eq!(refused(&missing), "cannot read /nowhere/at/all");
}
