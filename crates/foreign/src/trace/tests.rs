//! Lines of each form, and what they say. All lines were made for these tests.

use super::*;

/// What a trace says: its form, and of each line its number and what it says.
type Said = (Format, Vec<(u64, Result<Found<'static>, String>)>);

fn owned(found: Found<'_>) -> Found<'static> {
    match found {
        Found::Entry(Entry { at_ns, kind, name, bytes, object_bytes, range }) => {
            let name = Cow::Owned(name.into_owned());
            Found::Entry(Entry { at_ns, kind, name, bytes, object_bytes, range })
        }
        Found::Failed => Found::Failed,
        Found::Unsupported(name) => Found::Unsupported(name.into_owned().into()),
        Found::Nothing => Found::Nothing,
    }
}

fn said(text: &[u8], format: Option<Format>) -> Result<Said, TraceError> {
    let mut all = Vec::new();
    let Scanned { format, .. } = scan(text, format, &mut |line, found| {
        all.push((line, found.map(owned)));
        Ok(())
    })?;
    Ok((format, all))
}

/// Returns a line in short: kind, name, bytes, object's bytes and range.
fn brief(found: &Result<Found<'static>, String>) -> String {
    match found {
        Ok(Found::Entry(entry)) => {
            let Entry { kind, name, bytes, object_bytes, range, .. } = entry;
            let name = String::from_utf8_lossy(name);
            let shown = |number: &Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
            let range = range.map_or("-".to_owned(), |(at, len)| format!("{at}+{len}"));
            format!("{} {name} {} {} {range}", kind.name(), shown(bytes), shown(object_bytes))
        }
        Ok(Found::Failed) => "failed".to_owned(),
        Ok(Found::Unsupported(name)) => format!("no {name}"),
        Ok(Found::Nothing) => "nothing".to_owned(),
        Err(reason) => format!("? {reason}"),
    }
}

#[track_caller]
fn check(text: &str, format: Format, instants: &[u64], expected: &[&str]) {
    let (told, all) = said(text.as_bytes(), None).unwrap();
    assert_eq!(told, format);
    assert_eq!(said(text.as_bytes(), Some(format)).unwrap().1, all, "the same where it is said");
    let found: Vec<String> = all.iter().map(|(_, found)| brief(found)).collect();
    assert_eq!(found, expected);
    let at = |found: &Result<Found<'static>, String>| match found {
        Ok(Found::Entry(entry)) => entry.at_ns,
        _ => None,
    };
    assert_eq!(all.iter().filter_map(|(_, found)| at(found)).collect::<Vec<_>>(), instants);
}

const SECOND: u64 = 1_000_000_000;
/// 2024-05-16T12:04:13Z, by `date -u -d ... +%s`.
const NOON: u64 = 1_715_861_053 * SECOND;

#[test]
fn access_logs_of_s3() {
    let line = |second: u32, operation: &str, key: &str, rest: &str| {
        format!(
            "0a1b photos [16/May/2024:12:04:{second} +0000] 192.0.2.7 0a1b 5F3A {operation} {key} \
             \"GET /photos/{key}?a=b HTTP/1.1\" {rest} 12 7 \"-\" \"agent \\x22 x\" - h= SigV4\n"
        )
    };
    let text = [
        line(13, "REST.GET.OBJECT", "a%2Fb", "200 - 1000 1000"),
        line(14, "REST.GET.OBJECT", "a%2Fb", "206 - 100 1000"),
        line(14, "REST.PUT.OBJECT", "c", "200 - - 77"),
        line(14, "REST.HEAD.OBJECT", "c", "200 - - 77"),
        line(14, "REST.GET.OBJECT", "no", "404 NoSuchKey 300 -"),
        line(14, "REST.GET.BUCKET", "-", "200 - 500 -"),
        line(14, "BATCH.DELETE.OBJECT", "c", "204 - - -"),
        line(14, "REST.GET.ACL", "c", "200 - 10 -"),
        line(14, "REST.PUT.PART", "d", "200 - - 5242880"),
        line(14, "REST.POST.UPLOAD", "d", "200 - 400 -"),
        line(14, "REST.GET.OBJECT", "a", "304 - - 10"),
        "a torn line\n".to_owned(),
    ]
    .concat();
    let second = NOON + SECOND;
    check(
        &text,
        Format::S3AccessLog,
        &[NOON, second, second, second, second, second, second, second],
        &[
            "GET photos/a%2Fb 1000 1000 -",
            "GET photos/a%2Fb - 1000 0+100",
            "PUT photos/c 77 77 -",
            "STAT photos/c - 77 -",
            "failed",
            "LIST  - - -",
            "DELETE photos/c - - -",
            "no REST.GET.ACL",
            "PUTPART photos/d 5242880 5242880 -",
            "COMPLETEUPLOAD photos/d - - -",
            "no GET answered by 304",
            "? it is not a line of an S3 access log",
        ],
    );
}

#[test]
fn logs_of_ceph() {
    let ops = include_str!("fixtures/rgw-ops.json");
    let second = NOON + SECOND;
    let (_, all) = said(ops.as_bytes(), None).unwrap();
    assert!(brief(&all[7].1).starts_with("? `{\\\"broken` cannot be used: EOF"), "{all:?}");
    let sound = ops.rsplit_once("{\"broken").unwrap().0;
    check(
        sound,
        Format::RgwOpsLog,
        &[NOON + SECOND / 4, second, second, second, second],
        &[
            "GET /b/k%20x 9 9 -",
            "PUT b/o 31 31 -",
            "PUTPART /b/o 50 - -",
            "STAT /b/o - 31 -",
            "LIST  - - -",
            "failed",
            "no get_bucket_location",
        ],
    );
    let access = include_str!("fixtures/rgw-access.log");
    check(
        access,
        Format::RgwAccessLog,
        &[NOON + SECOND / 4, second],
        &["nothing", "GET /b/k - - 50+100", "PUT /b/k - - -", "no GET ?acl"],
    );
}

#[test]
fn traces_of_minio() {
    let text = include_str!("fixtures/minio.json");
    let second = NOON + SECOND;
    check(
        text,
        Format::MinioTrace,
        &[NOON + SECOND / 2, second, second],
        &[
            "GET /b/k 4096 - -",
            "PUT /b/k 2100 - -",
            "GET /b/k - - 10+10",
            "failed",
            "no s3.DeleteMultipleObjects",
        ],
    );
}

#[test]
fn traces_of_ibm() {
    let text = "0 REST.PUT.OBJECT 3a1f 1056\n5 REST.GET.OBJECT 3a1f 1056 0 1055\n\
                9 REST.GET.OBJECT 3a1f 1056 100 199\n9 REST.HEAD.OBJECT 3a1f 1056\n\
                11 REST.DELETE.OBJECT 3a1f\n12 REST.COPY.OBJECT 3a1f 9\n\
                13 REST.GET.OBJECT 3a1f 1056 5 2\n-1 REST.GET.OBJECT 3a1f 9\n";
    let ms = SECOND / 1_000;
    check(
        text,
        Format::IbmCos,
        &[0, 5 * ms, 9 * ms, 9 * ms, 11 * ms],
        &[
            "PUT 3a1f 1056 1056 -",
            "GET 3a1f 1056 1056 -",
            "GET 3a1f - 1056 100+100",
            "STAT 3a1f 1056 1056 -",
            "DELETE 3a1f - - -",
            "no REST.COPY.OBJECT",
            "? byte 2 comes before byte 5",
            "? `-1` is not a time",
        ],
    );
}

#[test]
fn logs_of_fio() {
    let third = "fio version 3 iolog\n5 /d/a add\n6 /d/a open\n10 /d/a read 0 4096\n\
                 25 /d/a write 4096 512\n30 /d/a sync 0 0\n31 /d/a datasync 0 0\n\
                 32 /d/a trim 0 4096\n33 /d/a read 0\n34 /d/a read 0 0\n40 /d/a close\n";
    check(
        third,
        Format::FioIolog,
        &[10_000, 25_000, 30_000, 31_000],
        &[
            "nothing",
            "nothing",
            "READ /d/a - - 0+4096",
            "WRITE /d/a - - 4096+512",
            "SYNC /d/a - - -",
            "SYNC /d/a - - 0+0",
            "no trim",
            "? the length is missing",
            "? a length of 0 is out of range: 1 to 4294967295",
            "nothing",
        ],
    );
    // Of version 2 waits say the time, if anything does.
    let second = "fio version 2 iolog\n/d/a open\n/d/a wait 100 0\n/d/a read 0 512\n\
                  /d/a wait 250\n/d/a write 0 512\n/d/a nap 1 2\n";
    check(
        second,
        Format::FioIolog,
        &[100_000, 350_000],
        &[
            "nothing",
            "nothing",
            "READ /d/a - - 0+512",
            "nothing",
            "WRITE /d/a - - 0+512",
            "? `nap` is not an action",
        ],
    );
    check(
        "fio version 2 iolog\n/d/a read 0 512\n",
        Format::FioIolog,
        &[],
        &["READ /d/a - - 0+512"],
    );
    let lines = said(third.as_bytes(), None).unwrap().1;
    assert_eq!(lines[0].0, 2, "the header is line 1");
}

#[test]
fn csv_with_a_header() {
    let text = "# made by hand\ntime_ms,op,bucket,key,size,offset,length,status\n\
                1,PUT,b,\"a,b\",9,,,200\n2.5,get,b,k,100,10,20,\n3,get,b,k,100,,,404\n\
                4,list,b,,,,,\n5,copy,b,k,,,,\n6,get,b\nNaN,get,b,k,1,,,\n";
    check(
        text,
        Format::Csv,
        &[1_000_000, 2_500_000, 4_000_000],
        &[
            "PUT b/a,b 9 - -",
            "GET b/k - 100 10+20",
            "failed",
            "LIST  - - -",
            "no copy",
            "? it has 3 fields where the header has 8",
            "? `NaN` is not a time",
        ],
    );
    assert_eq!(said(text.as_bytes(), None).unwrap().1[0].0, 3, "behind a remark and the header");
    check(
        "timestamp\top\tfile\toffset\tlength\n2024-05-16T12:04:13Z\tread\tf\t0\t512\n",
        Format::Csv,
        &[NOON],
        &["READ f - - 0+512"],
    );
    // Without a column of instants there are none.
    check("op;key;size\nput;k;5\n", Format::Csv, &[], &["PUT k 5 - -"]);
}

#[test]
fn raw_files_of_warp_compressed_and_not() {
    let text = include_str!("fixtures/warp.csv");
    let expected = [
        "PUT p/a 100 - -",
        "GET p/a 100 - -",
        "failed",
        "no DELETE of several objects with one call",
    ];
    check(text, Format::Warp, &[NOON, NOON + SECOND], &expected);
    let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
    assert_eq!(said(&packed, None).unwrap(), said(text.as_bytes(), None).unwrap());
}

#[test]
fn what_is_no_trace_is_refused_in_a_sentence() {
    let refused = |bytes: &[u8], format| said(bytes, format).unwrap_err().to_string();
    assert_eq!(refused(b"", None), "it is empty");
    assert_eq!(refused(b" \n\n", None), "it is empty");
    assert!(refused(&[0x1f, 0x8b, 8, 0], None).starts_with("it is compressed with gzip"));
    assert!(refused(b"hello\nworld\n", None).starts_with("line 1: its format is not recognised"));
    assert!(refused(&[0, 1, 2, 255], None).starts_with("line 1: its format is not recognised"));
    let no_header = refused(b"1,get,k\n", Some(Format::Csv));
    assert!(no_header.starts_with("line 1: the header names no column `op`"), "{no_header}");
    assert!(
        refused(b"hello\n", Some(Format::FioIolog)).starts_with("line 1: it is not a fio iolog")
    );
}

#[test]
fn hostile_lines_are_passed_over_and_do_not_fill_memory() {
    let mut text = b"1 REST.GET.OBJECT a 9\n2 REST.GET.OBJECT ".to_vec();
    text.extend(std::iter::repeat_n(b'x', LINE_BYTES_MAX * 3));
    text.extend_from_slice(b" 9\n3 REST.GET.OBJECT ../\x00b 9\n4 REST.GET.OBJECT \xff\xfe 9");
    let (_, all) = said(&text, None).unwrap();
    let found: Vec<String> =
        all.iter().map(|(line, found)| format!("{line} {}", brief(found))).collect();
    assert_eq!(
        found,
        [
            "1 GET a 9 9 -",
            "2 ? it is longer than 1048576 bytes",
            "3 GET ../\0b 9 9 -",
            "4 GET \u{fffd}\u{fffd} 9 9 -",
        ]
    );
    // Who takes the lines may end it.
    let mut count = 0;
    let ended = scan(&b"1 REST.GET.OBJECT a\n2 REST.GET.OBJECT a\n"[..], None, &mut |_, _| {
        count += 1;
        Err("enough".to_owned())
    });
    assert_eq!((ended.unwrap_err().to_string(), count), ("line 1: enough".to_owned(), 1));
}

#[test]
fn names_of_forms_are_read_as_they_are_written() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
        assert!(!format.never_told().is_empty());
    }
    assert_eq!(Format::from_name("plimsoll"), None);
}

#[test]
fn a_form_says_what_its_instants_are_counted_in() {
    let iolog = b"fio version 2 iolog\n/d/a add\n/d/a wait 1000000\n/d/a read 0 512\n";
    let beast = b"beast: 0x7f00: 192.0.2.9 - u [16/May/2024:12:04:13 +0000] \"GET /b/k HTTP/1.1\" \
        200 100 - \"aws-cli/2\" - latency=0.001s\n";
    for (text, tick) in [
        (&iolog[..], Duration::from_micros(1)),
        (b"1000 REST.GET.OBJECT a\n", Duration::from_millis(1)),
        (b"time,op,key\n1,get,a\n", Duration::from_secs(1)),
        (b"time_s,op,key\n1,get,a\n", Duration::from_secs(1)),
        (b"time_ms,op,key\n1000,get,a\n", Duration::from_millis(1)),
        (b"time_us,op,key\n1000000,get,a\n", Duration::from_micros(1)),
        (b"time_ns,op,key\n1000000000,get,a\n", Duration::from_nanos(1)),
        (beast, Duration::from_secs(1)),
    ] {
        let scanned = scan(text, None, &mut |_, _| Ok(())).unwrap();
        assert_eq!(scanned.tick, tick, "{}", String::from_utf8_lossy(text));
    }
}
