//! What the fork adds: operations, work, keys of storages, units.

use super::*;

const SIO: &str = "<storage type=\"siov1\" config=\"accesskey=a;secretkey=b;\
    endpoint=https://h:9443;path_style_access=true;no_verify_ssl=true;aws_region=eu-1;\
    storage_class=COLD;part_size=8388608;max_connections=9;restore_days=3;is_prefetch=false\"/>";

#[test]
fn keys_of_its_storages() {
    let lowered = lowered(&of_storage(
        SIO,
        &work("<operation type='head' config='containers=u(1,2);objects=r(1,9)'/>"),
    ));
    check_part(
        &lowered,
        "/targets",
        r#"{"s3":{"hosts":"h:9443","region":"eu-1","tls":true,"lookup":"path",
            "storage_class":"COLD","insecure":true}}"#,
    );
    check_part(
        &lowered,
        "/stages/0/jobs/0/work/objects",
        r#"[{"stat":"objects","weight":100,"pick":{"bucket":"uniform","key":"sequential"},
            "name":"head"}]"#,
    );
    let told: Vec<&str> = lowered.notes.iter().map(String::as_str).collect();
    assert_eq!(
        told,
        [
            "line 2: `max_connections` is ignored: every worker has its own connection",
            "line 2: `is_prefetch` is ignored: nothing is fetched before it is asked for"
        ]
    );
}

#[test]
fn uploads_in_parts() {
    let prepare = "<work type='mprepare' workers='2' \
        config='containers=r(1,1);objects=r(1,4);sizes=c(64)MiB'/>";
    let lowered = self::lowered(&of_storage(SIO, prepare));
    check_part(
        &lowered,
        "/sets/objects",
        r#"{"named":{"bucket":"mycontainers1","key":"myobjects{1..4}"},"size":"64MiB",
            "part":"8MiB","touch":true,"shared":true}"#,
    );
    assert_eq!(part(&lowered, "/stages/0/jobs/0/work"), r#"{"fill":"objects"}"#);
    assert_eq!(part(&lowered, "/stages/0/jobs/0/name"), "\"w1-mprepare\"");
    assert!(lowered.notes.iter().all(|note| !note.contains("KiB")));
    let writes = |config: &str| {
        let operation = format!(
            "<operation type='mwrite' \
             config='containers=c(1);objects=u(1,4);sizes=c(9)MB{config}'/>"
        );
        part(
            &self::lowered(&of_storage(SIO, &work(&operation))),
            "/stages/0/jobs/0/work/objects/0/part",
        )
    };
    assert_eq!(writes(""), "\"8MiB\"");
    // Its smallest.
    assert_eq!(writes(";part_size=1000"), "\"5MiB\"");
    let files = "<operation type='mfilewrite' config='containers=c(1);files=/d;fileselection=s'/>";
    let lowered = self::lowered(&of_storage(SIO, &work(files)));
    assert_eq!(part(&lowered, "/stages/0/jobs/0/work/objects/0/part"), "\"8MiB\"");
}

#[test]
fn reads_of_ranges() {
    let keys = "is_range_request=true;file_length=10000000;chunk_length=1000000";
    let read = |config: &str| {
        format!("<operation type='read' config='containers=c(1);objects=u(1,4){config}'/>")
    };
    let of_operation = of_storage(SIO, &work(&read(&format!(";{keys}"))));
    let of_target = of_storage(&SIO.replace("restore_days=3", keys), &work(&read("")));
    for text in [of_operation, of_target] {
        let range = part(&lowered(&text), "/stages/0/jobs/0/work/objects/0/range");
        assert_eq!(range, r#"{"length":"1000000B","of":"10000000B"}"#);
    }
    let said = refusal(&of_storage(
        SIO,
        &work(&read(";is_range_request=true;file_length=10;chunk_length=11")),
    ));
    assert!(said.contains("chunk_length=11 is out of range: 1 to 10"), "{said}");
    let said = refusal(&of_storage(SIO, &work(&read(";is_range_request=true;file_length=10"))));
    assert!(said.starts_with("no such key defined: chunk_length\n"), "{said}");
}

#[test]
fn what_writes_to_no_storage_is_refused() {
    let said = refusal(&of_storage(
        SIO,
        &work("<operation type='localwrite' config='containers=c(1);objects=c(1);sizes=c(1)KB'/>"),
    ));
    assert!(said.contains("localwrite writes files on the machine of a driver"), "{said}");
    for kind in ["mwrite", "mfilewrite", "localwrite", "restore"] {
        let operation = format!(
            "<operation type='{kind}' config='containers=c(1);objects=c(1);sizes=c(1)KB'/>"
        );
        let said = refusal(&of_storage(
            "<storage type='s3' config='endpoint=http://h'/>",
            &work(&operation),
        ));
        assert!(said.starts_with(&format!("unrecognized operation: {kind}\n")), "{said}");
        assert!(said.contains("write type=\"sio\" for `s3`"), "{said}");
    }
    let said = refusal(&of_works(
        "<work type='mprepare' workers='1' \
         config='containers=r(1,1);objects=r(1,1);sizes=c(1)MB'/>",
    ));
    assert!(said.starts_with("unrecognized operation: mprepare\n"), "{said}");
}
