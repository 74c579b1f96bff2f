//! Tests of the raw format: real files, every kind of bad input, and the way out and back.
#![allow(clippy::disallowed_methods)]

use std::io::{self, Read, Write};

use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord, StageId};
use proptest::prelude::*;

use super::*;
use crate::warp::{FileKind, WarpError, detect};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/warp/");
/// The header of today with its fifteen columns.
const HEADER: &str = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\t\
                      first_byte\tlast_byte\tend\tduration_ns\tcat\n";
const ROW: &str = "0\t5\tGET\tb2Zi\t1\t16384\thttp://a:1\tp/1.rnd\t\t2026-11-20T20:53:18.2Z\t\
                   2026-11-20T20:53:18.25Z\t\t2026-11-20T20:53:18.3Z\t100000000\t0\n";
/// When `ROW` starts.
const START_NS: u64 = 1_795_207_998_200_000_000;

/// A scanned file: its records with their texts, and the rest.
struct Scanned {
    ops: Vec<(OpRecord, String, String)>,
    names: Names,
    end: ScanEnd,
}

/// Shows every operation of a file.
type Show<'a> = &'a mut dyn FnMut(&OpRecord, &Texts<'_>);

fn scanned(
    scan: impl FnOnce(&mut Names, Show<'_>) -> Result<ScanEnd, WarpError>,
) -> Result<Scanned, WarpError> {
    let (mut names, mut ops) = (Names::default(), Vec::new());
    let end = scan(&mut names, &mut |op, texts| {
        ops.push((*op, texts.file.to_owned(), texts.error.to_owned()));
    })?;
    assert_eq!(end.rows, ops.len() as u64);
    Ok(Scanned { ops, names, end })
}

fn try_scan(input: impl Read) -> Result<Scanned, WarpError> {
    scanned(|names, show| scan(input, names, show))
}

fn try_scan_ahead(input: impl Read + Send) -> Result<Scanned, WarpError> {
    scanned(|names, show| scan_ahead(input, names, show))
}

fn scan_text(text: &str) -> Scanned {
    try_scan(text.as_bytes()).unwrap()
}

fn refusal(input: impl Read) -> String {
    try_scan(input).map(|_| ()).unwrap_err().to_string()
}

fn losses(text: &str) -> Vec<String> {
    scan_text(text).end.losses.iter().map(Loss::to_string).collect()
}

fn compress(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).unwrap()
}

/// The good row and, after it, the good row with one text in it replaced.
fn after_a_good_row(from: &str, to: &str) -> String {
    assert!(ROW.contains(from));
    format!("{HEADER}{ROW}{}", ROW.replacen(from, to, 1))
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{TESTDATA}{name}")).unwrap()
}

#[test]
fn every_real_file_is_read_whole() {
    let mut files = 0;
    for entry in std::fs::read_dir(TESTDATA).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".csv.zst") {
            continue;
        }
        let bytes = file(&name);
        let text = String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap();
        let rows = text.lines().skip(1).filter(|line| !line.starts_with('#')).count();
        let failed = |line: &&str| line.contains("unsupported") || line.contains("cannot be empty");
        let failed_count = text.lines().filter(failed).count();
        let trailer = text.lines().find_map(|line| line.strip_prefix("# "));

        let compressed = try_scan(&bytes[..]).unwrap();
        assert_eq!(compressed.ops.len(), rows, "{name}");
        assert_eq!(compressed.end.losses, [], "{name}");
        assert_eq!(compressed.end.command_line.as_deref(), trailer, "{name}");
        let is_failed = |(op, _, _): &&(OpRecord, String, String)| !op.outcome.is_ok();
        assert_eq!(compressed.ops.iter().filter(is_failed).count(), failed_count, "{name}");
        let plain = try_scan(text.as_bytes()).unwrap();
        assert_eq!((plain.ops, plain.end), (compressed.ops, compressed.end), "{name}");
        assert_eq!(detect(&bytes[..]).unwrap(), FileKind::Raw);
        assert_eq!(detect(text.as_bytes()).unwrap(), FileKind::Raw);
        files += 1;
    }
    assert_eq!(files, 16);
}

#[test]
fn a_second_scan_numbers_names_alike() {
    let bytes = file("get-2hosts-full-v.csv.zst");
    let mut names = Names::default();
    let mut passes = [Vec::new(), Vec::new()];
    for pass in &mut passes {
        scan(&bytes[..], &mut names, &mut |op, _| pass.push(*op)).unwrap();
    }
    assert_eq!(passes[0], passes[1]);
    assert_eq!(names.endpoints, ["http://localhost:19110", "http://127.0.0.1:19110"]);
    assert_eq!(names.clients, ["cPO1"]);
    let mut threads: Vec<u32> = names.workers.iter().map(|worker| worker.thread).collect();
    assert_eq!(threads[0], 3, "the first row is worker 3's");
    threads.sort_unstable();
    assert_eq!(threads, [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// The first and the last row as the facts about the format show them.
#[test]
fn rows_of_today_have_the_values_of_the_file() {
    let get_full = try_scan(&file("get-full.csv.zst")[..]).unwrap();
    let (put, put_name, _) = &get_full.ops[0];
    let start = 1_795_207_984_377_041_977;
    assert_eq!((put.kind, put.stage), (OpKind::Put, StageId(0)));
    assert_eq!((put.bytes, put.objects_count, put.attempts), (16_384, 1, 1));
    assert_eq!((put.start, put.intended), (Moment::from_ns(start), Moment::from_ns(start)));
    assert_eq!(put.first_byte, None);
    assert_eq!(put.last_byte_sent, Some(Moment::from_ns(start + 5_614_364)));
    assert_eq!(put.end, Moment::from_ns(start + 73_469_946));
    assert_eq!(put_name, "8D9ltDyq/1.hGp4WFvq7(iIX2qi.rnd");
    assert_eq!(put.outcome, ErrorClass::Ok);
    assert_eq!(get_full.names.workers[put.worker.0 as usize].thread, 7);
    assert_eq!(get_full.names.endpoints, ["http://127.0.0.1:19110"]);
    assert_eq!(get_full.names.clients, ["b2Zi"]);
    assert_eq!(get_full.end.utc_offset_seconds, Some(0));

    let (get, get_name, _) = get_full.ops.last().unwrap();
    assert_eq!((get.kind, get.stage), (OpKind::Get, StageId(1)));
    assert_eq!(get.first_byte, Some(Moment::from_ns(1_795_207_998_301_826_948)));
    assert_eq!(get.last_byte_sent, None);
    assert_eq!(get.service_time().as_nanos(), 5_517_299);
    assert_eq!(get_name, "BIqCXLHT/79.gCRCHrfvOGJqiOkM.rnd");
    assert_eq!(get_full.names.workers[get.worker.0 as usize].thread, 5);
}

#[test]
fn the_header_of_2019_is_read() {
    let old = try_scan(&file("upstream-testdata-get.csv.zst")[..]).unwrap();
    assert_eq!(old.names.endpoints, [""]);
    assert_eq!(old.names.clients, [""]);
    assert_eq!(old.end.utc_offset_seconds, Some(3_600));
    assert_eq!(old.end.command_line, None);
    let of_kind = |kind| old.ops.iter().filter(|(op, _, _)| op.kind == kind).count();
    assert_eq!((of_kind(OpKind::Put), of_kind(OpKind::Get)), (1_000, 20_948));
    let (first, name, _) = &old.ops[0];
    assert_eq!(first.start, Moment::from_ns(1_573_661_226_317_343_100));
    assert_eq!(first.service_time().as_nanos(), 76_998_700);
    assert_eq!(old.names.workers[0], ForeignWorker { client: 0, thread: 12 });
    assert_eq!(name, "jDquNn4L/6DMbFzH4FRa(Q(DR.rnd");
}

#[test]
fn failures_keep_their_text_and_batches_their_count() {
    let fanout = try_scan(&file("fanout-all-errors-full.csv.zst")[..]).unwrap();
    let (op, _, error) = &fanout.ops[0];
    assert_eq!((op.kind, op.objects_count, op.bytes), (OpKind::Post, 10, 163_840));
    assert_eq!(error, "Request body cannot be empty.");
    assert!(fanout.ops.iter().all(|(op, _, _)| op.outcome == ErrorClass::Client));
    let append = try_scan(&file("append-errors-full.csv.zst")[..]).unwrap();
    let ok = append.ops.iter().filter(|(op, _, _)| op.outcome.is_ok()).count();
    assert_eq!((ok, append.ops.len()), (4, 4_975));
}

#[test]
fn columns_are_found_by_name() {
    let shuffled = "end\tsurprise\tstart\tfirst_byte\terror\tfile\tbytes\tn_objects\top\tthread\n\
                    1970-01-01T00:00:03Z\t?\t1970-01-01T00:00:01Z\t\t\tk\t7\t2\tDELETE\t70000\n";
    let scanned = scan_text(shuffled);
    let (op, name, _) = &scanned.ops[0];
    assert_eq!((op.kind, op.bytes, op.objects_count), (OpKind::Delete, 7, 2));
    assert_eq!((op.start.as_ns(), op.end.as_ns()), (1_000_000_000, 3_000_000_000));
    assert_eq!(name, "k");
    assert_eq!(scanned.names.workers, [ForeignWorker { client: 0, thread: 70_000 }]);
    // Fourteen columns: today's without `last_byte`.
    let fourteen = format!("{HEADER}{ROW}")
        .replace("\tlast_byte", "")
        .replace("\t\t2026-11-20T20:53:18.3Z", "\t2026-11-20T20:53:18.3Z");
    assert_eq!(scan_text(&fourteen).ops, scan_text(&format!("{HEADER}{ROW}")).ops);
}

#[test]
fn comments_blank_lines_and_returns_do_no_harm() {
    let text = format!("# first\r\n\n{HEADER}\n#\n{ROW}\r\n# warp get --x=1\n{ROW}\n# warp late\n");
    let scanned = scan_text(&text);
    assert_eq!((scanned.ops.len(), scanned.end.losses.len()), (2, 0));
    assert_eq!(scanned.end.command_line.as_deref(), Some("warp get --x=1"));
    let with_returns = scan_text(&text.replace("\r\n", "\n").replace('\n', "\r\n"));
    assert_eq!(with_returns.ops, scanned.ops);
    assert_eq!(with_returns.end, scanned.end);
    let with_mark = scan_text(&format!("\u{feff}{text}"));
    assert_eq!(with_mark.ops, scanned.ops);
}

#[test]
fn quoted_fields_may_hold_anything() {
    let quoted = "rnd\t\"a \"\"b\"\"\tc\r\nd\n# e\"\t";
    let text = after_a_good_row("rnd\t\t", quoted) + ROW;
    let scanned = scan_text(&text.replace("\t0\n", "\t\"0\"\r\n"));
    assert_eq!(scanned.end.losses, []);
    let errors: Vec<&str> = scanned.ops.iter().map(|(_, _, error)| error.as_str()).collect();
    assert_eq!(errors, ["", "a \"b\"\tc\r\nd\n# e", ""]);
    // Only a quote at the beginning of a field is one.
    let name = scan_text(&after_a_good_row("p/1.rnd", "p/\"1\".rnd")).ops[1].1.clone();
    assert_eq!(name, "p/\"1\".rnd");
}

#[test]
fn a_line_number_counts_the_lines_of_quoted_fields() {
    let text = after_a_good_row("rnd\t\t", "rnd\t\"a\n\nb\"\t") + &ROW.replace("GET", "SIT");
    assert_eq!(losses(&text), ["1 row of the unknown operation kind `SIT` was skipped (line 6)"]);
}

#[test]
fn a_row_that_cannot_be_used_is_skipped_and_counted() {
    for (from, to, loss) in [
        ("GET", "GRAB", "1 row of the unknown operation kind `GRAB` was skipped (line 3)"),
        (
            "\t5\t",
            "\t-5\t",
            "1 row with an unreadable value in column `thread` was skipped (line 3)",
        ),
        (
            "\t1\t",
            "\t\t",
            "1 row with an unreadable value in column `n_objects` was skipped (line 3)",
        ),
        ("16384", "1e4", "1 row with an unreadable value in column `bytes` was skipped (line 3)"),
        (
            "16384",
            "99999999999999999999",
            "1 row with an unreadable value in column `bytes` was skipped (line 3)",
        ),
        (
            // 2^53 + 1.
            "16384",
            "9007199254740993",
            "1 row with an unreadable value in column `bytes` was skipped (line 3)",
        ),
        (
            "2026-11-20T20:53:18.2Z",
            "NaN",
            "1 row with an unreadable value in column `start` was skipped (line 3)",
        ),
        (
            "2026-11-20T20:53:18.3Z",
            "0001-01-01T00:00:00Z",
            "1 row with an unreadable value in column `end` was skipped (line 3)",
        ),
        (
            "2026-11-20T20:53:18.25Z",
            "soon",
            "1 row with an unreadable value in column `first_byte` was skipped (line 3)",
        ),
        ("18.3Z", "18.1Z", "1 row that ends before it starts was skipped (line 3)"),
        ("\t0\n", "\n", "1 row that cannot be cut into the header's columns was skipped (line 3)"),
        (
            "p/1.rnd",
            "p/\t1.rnd",
            "1 row that cannot be cut into the header's columns was skipped (line 3)",
        ),
        (
            "p/1.rnd",
            "\"p\"/1",
            "1 row that cannot be cut into the header's columns was skipped (line 3)",
        ),
    ] {
        let text = after_a_good_row(from, to) + ROW;
        let scanned = scan_text(&text);
        assert_eq!(scanned.ops.len(), 2, "{to}");
        assert_eq!(scanned.ops[0], scanned.ops[1], "{to}");
        assert_eq!(losses(&text), [loss], "{to}");
    }
    let long = after_a_good_row("http://a:1", &"x".repeat(NAME_BYTES_MAX + 1));
    assert_eq!(
        losses(&long),
        ["1 row with an unreadable value in column `endpoint` was skipped (line 3)"]
    );
}

#[test]
fn sums_of_a_file_have_a_limit() {
    // 2^60 bytes are 128 rows of 2^53; 2^40 objects are 256 rows of 2^32 and less of 2^32 - 1.
    let bytes = ROW.replace("16384", "9007199254740992").repeat(130);
    let scanned = scan_text(&format!("{HEADER}{bytes}{}", ROW.replace("16384", "0")));
    assert_eq!(scanned.ops.len(), 129);
    assert_eq!(scanned.ops.iter().map(|(op, ..)| op.bytes).sum::<u64>(), BYTES_SUM_MAX);
    let said: Vec<String> = scanned.end.losses.iter().map(Loss::to_string).collect();
    let loss =
        "2 rows with more in column `bytes` than can be added up were skipped (first in line 130)";
    assert_eq!(said, [loss]);
    let objects = ROW.replace("\t1\t", "\t4294967295\t").repeat(257);
    let loss = "1 row with more in column `n_objects` than can be added up was skipped (line 258)";
    assert_eq!(losses(&format!("{HEADER}{objects}")), [loss]);
}

#[test]
fn a_flawed_moment_or_duration_costs_only_itself() {
    for (from, to, loss) in [
        (
            "18.25Z",
            "18.1Z",
            "1 row has a first byte outside start to end, which was left out (line 3)",
        ),
        (
            "18.25Z\t\t",
            "18.25Z\t2026-11-20T20:53:18.31Z\t",
            "1 row has a last byte outside start to end, which was left out (line 3)",
        ),
        (
            "100000000",
            "NaN",
            "1 row has a duration that is not end minus start, which was not used (line 3)",
        ),
        (
            "100000000",
            "-100000000",
            "1 row has a duration that is not end minus start, which was not used (line 3)",
        ),
        (
            "100000000",
            "98800000",
            "1 row has a duration that is not end minus start, which was not used (line 3)",
        ),
    ] {
        let text = after_a_good_row(from, to);
        let scanned = scan_text(&text);
        assert_eq!(losses(&text), [loss], "{to}");
        let good = scanned.ops[0].0;
        let first_byte = good.first_byte.filter(|_| !loss.contains("first byte"));
        assert_eq!(scanned.ops[1].0, OpRecord { first_byte, ..good }, "{to}");
    }
    // The two clocks of warp differ by a little in every real file.
    assert_eq!(losses(&after_a_good_row("100000000", "99000000")), [""; 0]);
    assert_eq!(losses(&after_a_good_row("100000000", "")), [""; 0]);
}

#[test]
fn losses_are_counted_together() {
    let text = after_a_good_row("GET", "GRAB") + &ROW.replace("GET", "GRAB") + &"\n# x\n".repeat(3);
    let found = losses(&(text + &ROW.replace("18.3Z", "18.1Z").repeat(2)));
    assert_eq!(
        found,
        [
            "2 rows of the unknown operation kind `GRAB` were skipped (first in line 3)",
            "2 rows that end before they start were skipped (first in line 11)",
        ]
    );
    let many: String = (0..40).map(|i| ROW.replace("GET", &format!("K{i}"))).collect();
    let found = scan_text(&format!("{HEADER}{ROW}{many}")).end.losses;
    assert_eq!(found.len(), UNKNOWN_OPS_MAX + 1);
    let others = Loss { what: LossKind::OtherUnknownOps, count: 24, first_line: 19 };
    assert_eq!(found.last(), Some(&others));
}

#[test]
fn a_quote_that_never_closes_costs_one_row() {
    let open = ROW.replace("p/1.rnd", "\"p/1.rnd");
    for rows_after in [3, 10_000] {
        let text = format!("{HEADER}{ROW}{open}{}", ROW.repeat(rows_after));
        assert!(rows_after < 10 || text.len() > ROW_BYTES_MAX);
        let scanned = scan_text(&text);
        assert_eq!(scanned.ops.len(), rows_after + 1);
        assert_eq!(
            losses(&text),
            ["1 row that cannot be cut into the header's columns was skipped (line 3)"]
        );
    }
}

#[test]
fn a_row_of_more_than_a_mebibyte_is_skipped() {
    let long = "x".repeat(ROW_BYTES_MAX);
    for file in [long.clone(), format!("\"{long}\"")] {
        let text = after_a_good_row("p/1.rnd", &file) + ROW;
        assert_eq!(scan_text(&text).ops.len(), 2);
        assert_eq!(
            losses(&text),
            ["1 row that cannot be cut into the header's columns was skipped (line 3)"]
        );
    }
    let comment = format!("{HEADER}{ROW}# {long}\n{ROW}");
    assert_eq!(scan_text(&comment).ops.len(), 2);
}

#[test]
fn a_file_that_is_cut_off_is_read_as_far_as_it_goes() {
    // The last line cut short, in plain text.
    let whole = format!("{HEADER}{ROW}{ROW}");
    for cut in [1, 5, ROW.len() - 1] {
        let text = &whole[..whole.len() - cut];
        assert_eq!(scan_text(text).ops.len(), 1);
        assert_eq!(losses(text), ["the file is cut off or damaged at line 3, the rest is lost"]);
    }
    // The compressed stream cut short, and with one byte wrong.
    let bytes = file("get-full.csv.zst");
    let all = try_scan(&bytes[..]).unwrap();
    let truncated = |scanned: &Scanned| {
        let ops = scanned.ops.len();
        assert!(ops > 1_000 && ops < all.ops.len());
        assert_eq!(scanned.ops, all.ops[..ops]);
        let loss = Loss { what: LossKind::Truncated, count: 1, first_line: ops as u64 + 2 };
        assert_eq!(scanned.end.losses, [loss]);
    };
    truncated(&try_scan(&bytes[..bytes.len() * 3 / 4]).unwrap());
    let mut damaged = bytes.clone();
    damaged.truncate(bytes.len() * 3 / 4);
    damaged.extend([0xff; 64]);
    let scanned = try_scan(&damaged[..]).unwrap();
    assert_eq!(scanned.end.losses.last().map(|loss| &loss.what), Some(&LossKind::Truncated));
    // A checksum that does not fit is found at the very end.
    let mut wrong_sum = Vec::new();
    let mut encoder = zstd::stream::write::Encoder::new(&mut wrong_sum, 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(format!("{HEADER}{}", ROW.repeat(10_000)).as_bytes()).unwrap();
    encoder.finish().unwrap();
    *wrong_sum.last_mut().unwrap() ^= 1;
    let scanned = try_scan(&wrong_sum[..]).unwrap();
    assert!(scanned.ops.len() > 9_000);
    assert_eq!(scanned.end.losses[0].what, LossKind::Truncated);
}

#[test]
fn what_is_no_raw_file_is_refused_with_its_reason() {
    let not_warp = "not a warp file: neither a zstd stream nor warp's text";
    let json = "an aggregated warp file holds no single operations, only a raw one (.csv.zst) does";
    for (text, reason) in [
        (b"\x89PNG\r\n\x1a\n\0\0".to_vec(), not_warp),
        (b"hello".to_vec(), not_warp),
        (b"name,value\n1,2\n".to_vec(), not_warp),
        (b"".to_vec(), "the file holds no operation"),
        (b"# only\n\n".to_vec(), "the file holds no operation"),
        (HEADER.as_bytes().to_vec(), "the file holds no operation"),
        (
            HEADER.replace("\top\t", "\t").replace("\tend\t", "\tEnd\t").into_bytes(),
            "not a warp raw file: its header lacks op, end",
        ),
        (
            compress(b"name\tvalue\n1\t2\n"),
            "not a warp raw file: its header lacks thread, op, n_objects, bytes, file, error, \
             start, first_byte, end",
        ),
        (b" {\"v\": 2}".to_vec(), json),
        (compress(b"{}"), json),
        (
            compress(HEADER.as_bytes())[..20].to_vec(),
            "the compressed stream is damaged or cut off before anything of use",
        ),
        (
            format!("{HEADER}{}", ROW.replace("GET", "GRAB")).into_bytes(),
            "the file holds no operation that can be used: 1 row of the unknown operation kind \
             `GRAB` was skipped (line 2)",
        ),
    ] {
        assert_eq!(refusal(&text[..]), reason, "{}", String::from_utf8_lossy(&text));
    }
    for real in ["get-default.json.zst", "merged-json.json.zst"] {
        assert_eq!(refusal(&file(real)[..]), json);
        assert_eq!(detect(&file(real)[..]).unwrap(), FileKind::Aggregated);
    }
}

#[test]
fn too_many_names_are_refused() {
    let rows: String =
        (0..=NAMES_MAX).map(|i| ROW.replace("http://a:1", &format!("h{i}"))).collect();
    let rows = format!("{HEADER}{rows}");
    assert_eq!(refusal(rows.as_bytes()), "the file names more than 65535 endpoints");
    let fewer = rows.trim_end();
    let fewer = &fewer[..=fewer.rfind('\n').unwrap()];
    assert_eq!(scan_text(fewer).names.endpoints.len(), NAMES_MAX);
}

#[test]
fn a_failing_reader_is_not_taken_for_a_damaged_file() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    for head in [format!("{HEADER}{ROW}").into_bytes(), compress(HEADER.as_bytes())] {
        let result = try_scan(head.chain(Failing));
        assert!(matches!(result.map(|_| ()), Err(WarpError::Read(_))));
    }
    // So long that a thread of its own is the first to find out.
    let name = |index: u64| format!("{:016x}", index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let rows = (0..30_000).map(|index| ROW.replace("p/1.rnd", &name(index))).collect::<String>();
    let mut long = compress(format!("{HEADER}{rows}").as_bytes());
    assert!(long.len() > 200_000, "{} bytes would be read at once", long.len());
    long.truncate(long.len() - 1);
    let result = try_scan_ahead(long.chain(Failing));
    assert!(matches!(result.map(|_| ()), Err(WarpError::Read(_))));
}

/// A reader that gives few bytes at a time.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(into.len()).min(self.0.len());
        into[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

#[test]
fn how_the_bytes_arrive_does_not_matter() {
    let bytes = file("list-full.csv.zst");
    // Also of a damaged stream: how far it is read must not depend on the pieces.
    let mut damaged = bytes.clone();
    damaged[bytes.len() * 3 / 4..].fill(0xff);
    for bytes in [bytes, damaged] {
        let whole = try_scan(&bytes[..]).unwrap();
        for size in [1, 7] {
            let trickled = try_scan(Trickle(&bytes, size)).unwrap();
            assert_eq!((&trickled.ops, &trickled.end), (&whole.ops, &whole.end));
        }
    }
}

#[test]
fn a_thread_that_reads_ahead_changes_nothing() {
    // Many more chunks than are kept ahead, the last one not full.
    let text = format!("{HEADER}{}", ROW.repeat(30_000));
    let long = compress(text.as_bytes());
    let names = ["list-full.csv.zst", "get-2hosts-full-v.csv.zst", "append-errors-full.csv.zst"];
    let mut files: Vec<Vec<u8>> = names.map(file).into();
    files.extend([long, text.into_bytes(), compress(b""), compress(HEADER.as_bytes())]);
    let same = |bytes: &[u8]| match (try_scan(bytes), try_scan_ahead(bytes)) {
        (Ok(here), Ok(ahead)) => {
            assert!(ahead.ops == here.ops && ahead.names == here.names && ahead.end == here.end);
        }
        (here, ahead) => {
            let refusal =
                |of: Result<Scanned, WarpError>| of.map(|_| ()).map_err(|of| of.to_string());
            assert_eq!(refusal(ahead), refusal(here));
        }
    };
    for whole in files {
        same(&whole);
        for part in [1, 3, 5, 7] {
            let cut = whole.len() * part / 8;
            same(&whole[..cut]);
            let mut damaged = whole.clone();
            damaged[cut..].iter_mut().take(64).for_each(|byte| *byte = !*byte);
            same(&damaged);
        }
    }
}

#[test]
fn error_texts_are_classed_by_what_they_say() {
    use ErrorClass::*;
    for (text, class) in [
        ("", Ok),
        ("Resource requested is unreadable, please reduce your request rate", Throttled),
        ("SlowDown: please wait", Throttled),
        ("429 Too Many Requests", Throttled),
        ("unexpected status: 503", Throttled),
        ("Get \"http://h:9000/b\": dial tcp 127.0.0.1:9000: connect: connection refused", Connect),
        ("dial tcp: lookup nowhere: no such host", Connect),
        ("dial tcp 10.0.0.1:9000: i/o timeout", Connect),
        ("net/http: TLS handshake timeout", Connect),
        ("read tcp 1.2.3.4:5->6.7.8.9:10: read: connection reset by peer", Reset),
        ("write: broken pipe", Reset),
        ("unexpected EOF", Reset),
        ("Put \"http://h/b/k\": EOF", Reset),
        ("EOF", Reset),
        ("context deadline exceeded", Timeout),
        ("net/http: timeout awaiting response headers", Timeout),
        ("Access Denied.", Denied),
        ("403 Forbidden", Denied),
        ("The request signature we calculated does not match", Denied),
        ("The Access Key Id you provided does not exist in our records.", Denied),
        ("The specified key does not exist.", NotFound),
        ("NoSuchBucket", NotFound),
        ("404 Not Found", NotFound),
        ("At least one of the pre-conditions you specified did not hold", Precondition),
        ("We encountered an internal error, please try again.", Server),
        ("502 Bad Gateway", Server),
        ("504 Gateway Timeout", Server),
        ("unexpected download size. want: 503, got: 404", Truncated),
        ("short read", Truncated),
        ("An unsupported API call for method: PUT at '/w-app/503/1.rnd'", Client),
        ("Request body cannot be empty.", Client),
        ("400 Bad Request", Client),
        ("want 500, got 0", Unknown),
        ("something odd happened", Unknown),
    ] {
        assert_eq!(classify(text), class, "{text}");
        assert_eq!(classify(&text.to_uppercase()), class, "{text}");
    }
}

#[test]
fn object_ids_tell_names_apart() {
    assert_eq!(object_id(b""), None);
    let names = (0..200_000).map(|i| format!("8D9ltDyq/{i}.hGp4WFvq7(iIX2qi.rnd"));
    let mut ids: Vec<u64> =
        names.map(|name| object_id(name.as_bytes()).unwrap().as_u64()).collect();
    ids.extend(
        [&b"a"[..], b"a\0", b"a\0\0\0\0\0\0\0", b"b"].map(|name| object_id(name).unwrap().as_u64()),
    );
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    // Spread evenly: the lowest tenth of the range holds a tenth of the ids.
    let lowest = ids.iter().filter(|id| **id < u64::MAX / 10).count();
    assert!(lowest.abs_diff(20_000) < 600, "{lowest}");
}

#[test]
fn a_written_row_looks_as_warp_writes_it() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let row = RawRow {
        thread: 5,
        op: "GET",
        client_id: "b2Zi",
        objects: 1,
        bytes: 16_384,
        endpoint: "http://a:1",
        file: "p/1.rnd",
        error: "",
        start_unix_ns: START_NS,
        first_byte: Some(START_NS + 50_000_000),
        last_byte: None,
        end_unix_ns: START_NS + 100_000_000,
    };
    writer.row(&row).unwrap();
    let failed = RawRow { error: "a \"b\"", file: "a\tb\nc\"d\r", first_byte: None, ..row };
    writer.row(&failed).unwrap();
    writer.comment("warp get --x\nsecond").unwrap();
    let text = zstd::decode_all(&writer.finish().unwrap()[..]).unwrap();
    let second = ROW.replacen('0', "1", 1).replace("p/1.rnd\t\t", "a_b_c_d_\t\"a \"\"b\"\"\"\t");
    let second = second.replace("2026-11-20T20:53:18.25Z", "");
    let expected = format!("{HEADER}{ROW}{second}# warp get --x\n# second\n");
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

/// What one row of the round trip holds: worker and client, kind and sizes, texts, moments.
type Made = ((u32, u8, usize), (u32, u64), (String, String), (u64, u32, Option<u32>, Option<u32>));

fn made() -> impl Strategy<Value = Made> {
    let text = "[ -~\t\r\n\"#é]{0,12}";
    let moments = (0..u64::MAX / 2, any::<u32>(), any::<Option<u32>>(), any::<Option<u32>>());
    ((any::<u32>(), 0..3u8, 0..9usize), (any::<u32>(), 0..=BYTES_MAX), (text, text), moments)
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(rows in prop::collection::vec(made(), 1..30)) {
        check_round_trip(&rows);
    }
}

/// A row as it goes out and comes back, names in place of numbers.
#[derive(Debug, PartialEq)]
struct Plain {
    client_and_thread: (String, u32),
    endpoint: String,
    kind: OpKind,
    sizes: (u32, u64),
    texts: (String, String),
    moments: (u64, Option<u64>, Option<u64>, u64),
}

fn check_round_trip(rows: &[Made]) {
    let rows: Vec<Plain> = rows.iter().map(plain).collect();
    let mut writer = Writer::new(Vec::new()).unwrap();
    for row in &rows {
        let raw = RawRow {
            thread: row.client_and_thread.1,
            op: row.kind.name(),
            client_id: &row.client_and_thread.0,
            objects: row.sizes.0,
            bytes: row.sizes.1,
            endpoint: &row.endpoint,
            file: &row.texts.0,
            error: &row.texts.1,
            start_unix_ns: row.moments.0,
            first_byte: row.moments.1,
            last_byte: row.moments.2,
            end_unix_ns: row.moments.3,
        };
        writer.row(&raw).unwrap();
    }
    writer.comment("warp x").unwrap();
    let Scanned { ops, names, end } = try_scan(&writer.finish().unwrap()[..]).unwrap();
    assert_eq!((end.losses.len(), end.command_line.as_deref()), (0, Some("warp x")));
    assert_eq!(ops.len(), rows.len());
    for (row, (op, file, error)) in rows.iter().zip(ops) {
        let ForeignWorker { client, thread } = names.workers[op.worker.0 as usize];
        let [first, last] = [op.first_byte, op.last_byte_sent].map(|at| at.map(Moment::as_ns));
        assert_eq!(op.outcome.is_ok(), error.is_empty());
        let found = Plain {
            client_and_thread: (names.clients[usize::from(client)].clone(), thread),
            endpoint: names.endpoints[usize::from(op.endpoint.0)].clone(),
            kind: op.kind,
            sizes: (op.objects_count, op.bytes),
            texts: (file, error),
            moments: (op.start.as_ns(), first, last, op.end.as_ns()),
        };
        // The object's name is the one text that is never in quotes.
        let file = row.texts.0.replace(['\t', '\r', '\n', '"'], "_");
        let texts = (file, row.texts.1.clone());
        let client_and_thread = row.client_and_thread.clone();
        let endpoint = row.endpoint.clone();
        assert_eq!(found, Plain { client_and_thread, endpoint, texts, ..*row });
    }
}

fn plain(made: &Made) -> Plain {
    let ((thread, client, kind), sizes, texts, (start, length, first, last)) = made.clone();
    let inside = |by: Option<u32>| by.map(|by| start + u64::from(by.min(length)));
    Plain {
        client_and_thread: (format!(" c{client}"), thread),
        endpoint: format!("http://\"h{client}\""),
        kind: OpKind::ALL[kind],
        sizes,
        texts,
        moments: (start, inside(first), inside(last), start + u64::from(length)),
    }
}
