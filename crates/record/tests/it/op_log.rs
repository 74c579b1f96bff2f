//! Writing the op log and reading it back, whole and after accidents.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use parquet::file::reader::SerializedFileReader;
use parquet::record::{Field, Row};
use plimsoll_model::{
    EndpointId, ErrorClass, JobId, Moment, ObjectId, OpKind, OpRecord, PackedOp, RunId, StageId,
    Visit, WorkerId,
};
use plimsoll_record::{
    OpLog, OpLogTotals, OpLogWriter, PART_AGE_MAX, PART_ROWS_MAX, RecordError, RunDirectory,
    SAVE_AGE, Salvage,
};

use crate::{EPOCH, endpoints, new_run, op, seal_anew, writer};

fn read(directory: &RunDirectory) -> Vec<OpRecord> {
    let mut ops = Vec::new();
    let rows = OpLog::open(directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
    assert_eq!(rows, ops.len() as u64);
    ops
}

fn part(directory: &RunDirectory, name: &str) -> std::path::PathBuf {
    directory.ops_path().join(name)
}

#[test]
fn every_column_comes_back_in_order() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    // More rows than one batch of the writer or the reader holds.
    let ops: Vec<OpRecord> = (0..40_000).map(op).collect();
    let mut writer = writer(&directory);
    let (first, second) = ops.split_at(100);
    writer.append(first).unwrap();
    let packed: Vec<PackedOp> = second.iter().map(PackedOp::from).collect();
    writer.append_packed(&packed).unwrap();
    let totals = writer.finish().unwrap();
    let bytes = fs::metadata(part(&directory, "part-000000.parquet")).unwrap().len();
    assert_eq!(totals, OpLogTotals { rows: 40_000, parts: 1, bytes });
    assert!(read(&directory) == ops);
}

/// A small generator (SplitMix64), so that a failure can be had again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number below 2^`bits`: always 5 of a calm column, mostly 5 of a mixed one, and of
    /// a wild one anything.
    fn of(&mut self, shape: u64, bits: u32) -> u64 {
        let any = self.next() >> (64 - bits);
        match shape {
            0 => 5,
            1 if !self.next().is_multiple_of(500) => 5,
            _ => any,
        }
    }
}

#[test]
fn columns_come_back_whether_they_are_calm_mixed_or_wild() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let shapes: [u64; 14] = std::array::from_fn(|_| random.next() % 3);
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = shapes;
        let row = |random: &mut Random| {
            let known = |random: &mut Random, shape| random.of(shape, 3) == 5;
            let intended = Moment::from_ns(random.of(a, 55));
            let after = |from: Moment, ns: u64| Moment::from_ns(from.as_ns() + ns);
            let start = after(intended, random.of(b, 40));
            let end = after(start, random.of(c, 46));
            let within = |random: &mut Random, bits| after(start, random.of(2, bits)).min(end);
            OpRecord {
                stage: StageId(random.of(d, 8) as u8),
                job: JobId(random.of(d, 8) as u8),
                worker: WorkerId(random.of(e, 24) as u32),
                endpoint: EndpointId(random.of(g, 1).min(1) as u16),
                object: known(random, h)
                    .then(|| ObjectId::new(WorkerId(random.of(i, 20) as u32), random.of(i, 39))),
                objects_count: random.of(j, 32) as u32,
                bytes: random.of(k, 47),
                intended,
                first_byte: known(random, l).then(|| within(random, 45)),
                assigned: known(random, m).then(|| within(random, 39)),
                last_byte_sent: known(random, n).then(|| within(random, 45)),
                outcome: ErrorClass::ALL[random.of(f, 3) as usize],
                attempts: random.of(d, 8) as u8,
                is_measured: random.of(d, 2) == 0,
                ..OpRecord::plain(OpKind::ALL[random.of(f, 3) as usize], start, end)
            }
        };
        // Batches of which the last one is not full, nor its last block.
        let ops: Vec<OpRecord> = (0..20_077).map(|_| row(&mut random)).collect();
        let place = tempfile::tempdir().unwrap();
        let directory = new_run(place.path());
        let mut writer = writer(&directory);
        writer.append(&ops).unwrap();
        writer.finish().unwrap();
        assert!(read(&directory) == ops, "seed {seed}");
    }
}

/// Returns a column of the first part as the file holds it.
fn stored(directory: &RunDirectory, name: &str) -> Vec<Option<i64>> {
    let file = fs::File::open(part(directory, "part-000000.parquet")).unwrap();
    let rows = SerializedFileReader::new(file).unwrap().into_iter();
    let field = |row: Row| match row.get_column_iter().find(|(column, _)| *column == name) {
        Some((_, Field::Long(value))) => Some(*value),
        Some((_, Field::Null)) => None,
        other => panic!("column {name} holds {other:?}"),
    };
    rows.map(|row| field(row.unwrap())).collect()
}

#[test]
fn moments_and_bytes_stand_in_the_file_as_the_document_says() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let at = Moment::from_ns;
    let get = OpRecord {
        kind: OpKind::Get,
        bytes: 0,
        intended: at(1_000),
        start: at(1_300),
        first_byte: Some(at(1_900)),
        assigned: None,
        last_byte_sent: None,
        end: at(2_000),
        ..op(1)
    };
    let put = OpRecord { kind: OpKind::Put, bytes: 5, last_byte_sent: Some(at(1_400)), ..get };
    let stat = OpRecord { kind: OpKind::Stat, intended: at(0), start: at(0), ..get };
    let refused = OpRecord { first_byte: None, intended: at(0), ..get };
    let ops = [get, put, stat, refused];
    let mut writer = writer(&directory);
    writer.append(&ops).unwrap();
    writer.finish().unwrap();

    let column = |name| stored(&directory, name);
    assert_eq!(column("bytes"), [Some(0), Some(5), None, Some(0)]);
    assert_eq!(column("schedule_delay_ns"), [Some(300), Some(300), Some(0), Some(1_300)]);
    assert_eq!(column("start_ns"), [Some(1_300), Some(1_300), Some(0), Some(1_300)]);
    assert_eq!(column("last_byte_sent_ns"), [None, Some(1_400), None, None]);
    assert_eq!(column("first_byte_to_end_ns"), [Some(100), Some(100), Some(100), None]);
    assert_eq!(column("end_ns"), [Some(2_000); 4]);
    assert_eq!(read(&directory), ops);

    // The document's ways to what is not a column.
    let latency = [700 + 300, 700 + 300, 2_000, 700 + 1_300].map(Duration::from_nanos);
    assert_eq!(ops.map(|op| op.latency()), latency);
    let ttfb = [Some(1_900 - 1_300), Some(1_900 - 1_400), Some(1_900), None];
    assert_eq!(ops.map(|op| op.ttfb()), ttfb.map(|ns| ns.map(Duration::from_nanos)));
}

#[test]
fn a_log_without_operations_has_no_parts() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    writer.tick(Moment::from_ns(u64::MAX)).unwrap();
    assert_eq!(writer.finish().unwrap(), OpLogTotals::default());
    assert_eq!(read(&directory), []);
}

#[test]
fn a_part_is_closed_when_its_oldest_operation_is_ten_seconds_old() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    let (old, young) = (op(1), op(2_000_000));
    writer.append(&[old, young]).unwrap();
    let due = old.end.after(PART_AGE_MAX);
    writer.tick(Moment::from_ns(due.as_ns() - 1)).unwrap();
    assert_eq!(read(&directory), []);
    writer.tick(due).unwrap();
    assert_eq!(read(&directory), [old, young]);

    // The next part has an age of its own.
    writer.append(&[op(3_000_000)]).unwrap();
    writer.tick(due.after(Duration::from_nanos(1))).unwrap();
    assert_eq!(OpLog::open(&directory).unwrap().parts(), 1);
    assert_eq!(writer.finish().unwrap().parts, 2);
    assert_eq!(read(&directory), [old, young, op(3_000_000)]);
}

#[test]
fn a_part_holds_a_million_rows_at_most() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    let thousand: Vec<OpRecord> = (0..1_000).map(op).collect();
    for _ in 0..PART_ROWS_MAX / 1_000 {
        writer.append(&thousand).unwrap();
    }
    assert!(part(&directory, "part-000000.parquet").exists());
    writer.append(&thousand[..1]).unwrap();
    let totals = writer.finish().unwrap();
    assert_eq!((totals.rows, totals.parts), (PART_ROWS_MAX + 1, 2));
    let rows = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap();
    assert_eq!(rows, PART_ROWS_MAX + 1);
}

/// Copies a run as it would be found if it were killed now.
fn killed(directory: &RunDirectory, to: &Path) -> RunDirectory {
    fs::create_dir_all(to.join("ops")).unwrap();
    for folder in ["", "ops"] {
        for entry in fs::read_dir(directory.path().join(folder)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), to.join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
    RunDirectory::open(to).unwrap()
}

fn salvaged(directory: &RunDirectory) -> (Vec<OpRecord>, Vec<String>) {
    let Salvage { log, losses, .. } = OpLog::salvage(directory).unwrap();
    let mut ops = Vec::new();
    log.scan(&mut |op| ops.push(*op)).unwrap();
    (ops, losses)
}

/// Writes rounds of operations a tenth of a second apart, and kills the run after some of them.
fn loses_two_seconds_at_most(ops_per_round: u64, kills: &[u64]) {
    const ROUND_NS: u64 = 100_000_000;
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(&place.path().join("run"));
    let mut writer = writer(&directory);
    let mut all = Vec::new();
    for round in 0..=*kills.last().unwrap() {
        let now = round * ROUND_NS;
        for number in 0..ops_per_round {
            let at = |ns| Moment::from_ns(now + ns);
            let op = op(round * ops_per_round + number);
            let (intended, start, end) = (at(number), at(number), at(number + 5));
            let first_byte = op.first_byte.map(|_| end);
            let last_byte_sent = op.last_byte_sent.map(|_| end);
            all.push(OpRecord { intended, start, end, first_byte, last_byte_sent, ..op });
        }
        writer.append(&all[all.len() - ops_per_round as usize..]).unwrap();
        writer.tick(Moment::from_ns(now + ROUND_NS / 2)).unwrap();
        if kills.contains(&round) {
            let copy = killed(&directory, &place.path().join(format!("killed-{round}")));
            let (ops, _) = salvaged(&copy);
            assert!(ops == all[..ops.len()], "killed in round {round}");
            let lost = all.len() - ops.len();
            assert!(lost as u64 <= 20 * ops_per_round, "{lost} lost in round {round}");
        }
    }
    assert_eq!(writer.finish().unwrap().rows, all.len() as u64);
    let mut ops = Vec::new();
    OpLog::open(&directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
    assert!(ops == all);
    let mut names: Vec<_> = fs::read_dir(directory.ops_path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let parts = kills.last().unwrap() / 100 + 1;
    let expected: Vec<_> = (0..parts).map(|number| format!("part-{number:06}.parquet")).collect();
    assert_eq!(names, expected);
}

#[test]
fn a_run_that_is_killed_loses_two_seconds_at_most() {
    // Few operations, which wait unencoded; and so many that some are in row groups already.
    loses_two_seconds_at_most(3, &[15, 27, 99, 101, 150, 219, 250]);
    loses_two_seconds_at_most(1_500, &[15, 27, 99, 101, 150]);
}

#[test]
fn a_run_that_is_killed_says_what_of_its_last_part_is_counted() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(&place.path().join("run"));
    let mut writer = writer(&directory);
    writer.append(&(0..30).map(op).collect::<Vec<_>>()).unwrap();
    let killed_at_once = killed(&directory, &place.path().join("at-once"));
    assert_eq!(salvaged(&killed_at_once), (Vec::new(), Vec::new()));

    writer.tick(op(0).end.after(SAVE_AGE)).unwrap();
    writer.append(&[op(30)]).unwrap();
    let copy = killed(&directory, &place.path().join("later"));
    let (ops, losses) = salvaged(&copy);
    assert_eq!(ops, (0..30).map(op).collect::<Vec<_>>());
    let expected = "part-000000.parquet was never closed, as the run was killed or is still going \
    on: the 30 operations that were saved of it are counted, and those of its \
                    last second or two are not";
    assert_eq!(losses, [expected]);
    // Who reads only what is complete passes it over.
    assert_eq!((OpLog::open(&copy).unwrap().unfinished(), read(&copy)), (1, Vec::new()));

    // What was saved becomes a part as any other, once.
    let closed = killed(&directory, &place.path().join("closed"));
    assert_eq!(closed.close_saved_parts().unwrap(), [expected]);
    assert_eq!(read(&closed), (0..30).map(op).collect::<Vec<_>>());
    assert_eq!(OpLog::open(&closed).unwrap().unfinished(), 0);
    assert_eq!(closed.close_saved_parts().unwrap(), [""; 0]);

    // What is left without its beginning is told of.
    let lone = killed(&copy, &place.path().join("lone"));
    fs::remove_file(lone.ops_path().join("part-000000.parquet.open")).unwrap();
    let expected = "part-000000.parquet.open is damaged (the part it belongs to is missing): its \
                    operations are not counted";
    assert_eq!(salvaged(&lone), (Vec::new(), vec![expected.to_owned()]));
    let [lost] = &lone.close_saved_parts().unwrap()[..] else { panic!("one part is lost") };
    assert!(lost.contains("the part it belongs to is missing"), "{lost}");

    // What was saved is as guarded as what is complete.
    let tail = copy.ops_path().join("part-000000.parquet.tail");
    let whole = fs::read(&tail).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&tail, damaged).unwrap();
        let left = OpLog::salvage(&copy).unwrap();
        let said = left.losses.iter().any(|loss| loss.contains("is damaged"));
        assert!(said, "bit {bit}");
        let losses = copy.close_saved_parts().unwrap();
        let is_said = losses[0].ends_with("its operations are not counted");
        assert!(is_said && read(&copy).is_empty(), "bit {bit}: {losses:?}");
    }
}

#[test]
fn an_endpoint_that_was_not_announced_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut writer = writer(&new_run(place.path()));
    let stray = OpRecord { endpoint: EndpointId(2), ..op(1) };
    let refused = writer.append(&[stray]).unwrap_err().to_string();
    assert!(refused.contains("names endpoint 2"), "{refused}");
    assert_eq!(endpoints().len(), 2);
}

#[test]
fn a_part_that_is_gone_is_missed() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    fs::remove_file(part(&directory, "part-000001.parquet")).unwrap();
    let missing = OpLog::open(&directory).unwrap_err().to_string();
    let expected = part(&directory, "part-000001.parquet").display().to_string();
    assert_eq!(missing, format!("{expected} is missing; was it moved or deleted?"));
}

#[test]
fn a_damaged_part_is_named() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    let path = part(&directory, "part-000001.parquet");
    let whole = fs::read(&path).unwrap();
    for damaged in [&whole[..0], &whole[..whole.len() / 2], b"PAR1 is not enough PAR1"] {
        fs::write(&path, damaged).unwrap();
        let refused = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap_err();
        let expected = format!("{} is damaged: ", path.display());
        assert!(refused.to_string().starts_with(&expected), "{refused}");
    }
}

#[test]
fn an_operation_that_moves_more_than_can_be_is_damage() {
    let written = |bytes| {
        let place = tempfile::tempdir().unwrap();
        let directory = new_run(place.path());
        let mut writer = writer(&directory);
        writer.append(&[OpRecord { kind: OpKind::Get, bytes, ..op(1) }]).unwrap();
        writer.finish().unwrap();
        let mut seen = 0;
        let scanned = OpLog::open(&directory).unwrap().scan(&mut |op| seen = op.bytes);
        scanned.map(|_| seen).map_err(|error| error.to_string())
    };
    assert_eq!(written(1 << 48), Ok(1 << 48));
    // Two of them would be a negative sum.
    let refused = written((1 << 63) - 1).unwrap_err();
    assert!(refused.contains("column bytes holds more than one operation moves"), "{refused}");
}

#[test]
fn a_part_of_another_run_is_no_part_of_this_one() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    let name = "part-000001.parquet";
    let elsewhere = tempfile::tempdir().unwrap();
    let other = new_run(elsewhere.path());
    let id = RunId::new("s3-get", EPOCH, 1);
    let mut writer = OpLogWriter::new(&other, &id, EPOCH, &endpoints());
    writer.append(&(0..4).map(op).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    fs::copy(part(&other, "part-000000.parquet"), part(&directory, name)).unwrap();

    let refused = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains(&format!("is damaged: it belongs to run {id};")), "{refused}");
    let left = OpLog::salvage(&directory).unwrap();
    assert_eq!(left.losses.len(), 1, "{:?}", left.losses);
    assert!(left.losses[0].contains(&format!("it belongs to run {id}")), "{:?}", left.losses);
}

/// Whatever bit of a part flips, reading says so; no flip brings the reader down.
#[test]
fn no_flipped_bit_of_a_part_goes_unseen() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    writer.append(&(0..300).map(op).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    let path = part(&directory, "part-000000.parquet");
    let whole = fs::read(&path).unwrap();
    // Every bit of the footer, and one of every byte before it.
    let pages = parted(&whole).0.len();
    let bits = (0..whole.len()).flat_map(|at| match at < pages {
        true => at * 8 + at % 8..at * 8 + at % 8 + 1,
        false => at * 8..at * 8 + 8,
    });
    for bit in bits {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &damaged).unwrap();
        let read = OpLog::open(&directory).unwrap().scan(&mut |_| ());
        assert!(matches!(read, Err(RecordError::Damaged { .. })), "bit {bit}: {read:?}");
        let left = OpLog::salvage(&directory).unwrap();
        assert_eq!(left.losses.len(), 1, "bit {bit}: {:?}", left.losses);
    }
}

/// Returns the bytes of a part before its footer, and the footer.
fn parted(part: &[u8]) -> (&[u8], &[u8]) {
    let (rest, end) = part.split_last_chunk::<8>().unwrap();
    rest.split_at(rest.len() - u32::from_le_bytes(*end.first_chunk().unwrap()) as usize)
}

#[test]
fn a_footer_of_nested_lists_is_refused_at_once() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    let path = part(&directory, "part-000001.parquet");
    let whole = fs::read(&path).unwrap();
    let (pages, footer) = parted(&whole);
    // Field 0, which nobody knows: a list of 10,000 lists of 2^31 - 1 truth values, which take no
    // byte. The Parquet library counts them all.
    let lists = [0xf1, 0xff, 0xff, 0xff, 0xff, 0x07].repeat(10_000);
    let footer = [&[0x09, 0x00, 0xf9, 0x90, 0x4e][..], &lists, footer].concat();
    let size = (footer.len() as u32).to_le_bytes();
    let mut bomb = [pages, &footer, &size, b"PAR1"].concat();
    seal_anew(&mut bomb);
    fs::write(&path, bomb).unwrap();
    let refused = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains("is damaged: its footer is not that of an op log"), "{refused}");
    let left = OpLog::salvage(&directory).unwrap();
    assert_eq!((left.log.scan(&mut |_| ()).unwrap(), left.losses.len()), (100, 1));
}

#[test]
fn pages_that_several_row_groups_share_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    let path = part(&directory, "part-000001.parquet");
    let whole = fs::read(&path).unwrap();
    let (pages, _) = parted(&whole);
    let read =
        ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(&path).unwrap()).unwrap();
    let of = read.file_metadata();
    let groups = [read.row_groups(); 9].concat();
    let of = FileMetaData::new(
        of.version(),
        of.num_rows() * 9,
        of.created_by().map(str::to_owned),
        of.key_value_metadata().cloned(),
        of.schema_descr_ptr(),
        None,
    );
    let mut shared = pages.to_vec();
    let footer = ParquetMetaData::new(of, groups);
    ParquetMetaDataWriter::new(&mut shared, &footer).finish().unwrap();
    seal_anew(&mut shared);
    fs::write(&path, shared).unwrap();
    let refused = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap_err().to_string();
    let expected = "is damaged: its columns take more bytes than it has";
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn a_part_of_a_large_number_costs_nothing_and_parts_that_are_no_files_are_left_out() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    fs::write(part(&directory, "part-4294967295.parquet"), "").unwrap();
    fs::write(part(&directory, "part-0000001.parquet"), "another name of part 1").unwrap();
    let fifo = part(&directory, "part-000001.parquet");
    fs::remove_file(&fifo).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let left = OpLog::salvage(&directory).unwrap();
    assert_eq!(left.log.scan(&mut |_| ()).unwrap(), 100);
    let [missing, fifo, empty] = &left.losses[..] else { panic!("{:?}", left.losses) };
    let range = "part-000003.parquet to part-4294967294.parquet are missing (4294967292 parts): \
                 their operations are not counted";
    assert_eq!(missing, range);
    assert!(fifo.starts_with("part-000001.parquet is damaged (it is a FIFO"), "{fifo}");
    assert!(empty.starts_with("part-4294967295.parquet is damaged ("), "{empty}");
    let refused = OpLog::open(&directory).unwrap_err();
    assert!(matches!(refused, RecordError::Missing { .. }), "{refused}");
}

#[test]
fn a_part_of_another_version_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    let path = part(&directory, "part-000001.parquet");
    let mut bytes = fs::read(&path).unwrap();
    let name = b"plimsoll.ops/1";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at + name.len() - 1] = b'2';
    seal_anew(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let refused = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains("has the schema `plimsoll.ops/2`"), "{refused}");
}

/// Reads a log by so many threads; what each of them saw, in order, and how many rows there were.
fn read_apart(log: &OpLog, threads: usize) -> (Vec<Vec<OpRecord>>, Result<u64, RecordError>) {
    let mut seen = vec![Vec::new(); threads];
    let mut visits: Vec<_> =
        seen.iter_mut().map(|seen| move |op: &OpRecord| seen.push(*op)).collect();
    let mut visits: Vec<&mut Visit<'_>> =
        visits.iter_mut().map(|visit| visit as &mut Visit<'_>).collect();
    let rows = log.scan_apart(&mut visits);
    drop(visits);
    (seen, rows)
}

#[test]
fn several_threads_see_every_operation_once() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    let log = OpLog::open(&directory).unwrap();
    let expected = read(&directory);
    for threads in [1, 2, 3, 8] {
        let (seen, rows) = read_apart(&log, threads);
        assert_eq!(rows.unwrap(), 150);
        let mut all: Vec<OpRecord> = seen.concat();
        all.sort_by_key(|op| (op.start, op.end));
        assert!(all == expected, "{threads} threads");
    }
    assert_eq!(log.read_by(2).threads(), 2);
    let log = OpLog::open(&directory).unwrap();
    assert_eq!((log.threads(), log.read_by(8).threads()), (1, 3), "no more than parts");
}

#[test]
fn several_threads_name_the_first_damaged_part() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    for name in ["part-000001.parquet", "part-000002.parquet"] {
        fs::write(part(&directory, name), b"PAR1 is not enough PAR1").unwrap();
    }
    let log = OpLog::open(&directory).unwrap();
    let expected = log.scan(&mut |_| ()).unwrap_err().to_string();
    assert!(expected.contains("part-000001.parquet"), "{expected}");
    for threads in [1, 2, 3, 8] {
        assert_eq!(read_apart(&log, threads).1.unwrap_err().to_string(), expected);
    }
}

fn three_parts(path: &Path) -> RunDirectory {
    let directory = new_run(path);
    let mut writer = writer(&directory);
    for number in 0..3 {
        writer.append(&(0..50).map(|row| op(number * 50 + row)).collect::<Vec<_>>()).unwrap();
        writer.tick(Moment::from_ns(u64::MAX)).unwrap();
    }
    assert_eq!(writer.finish().unwrap().parts, 3);
    directory
}
