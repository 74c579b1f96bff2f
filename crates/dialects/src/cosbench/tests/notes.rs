//! What is passed over is told, and so is what is likely to be meant otherwise.

use super::*;

/// Checks that a text comes to these notes, and no others.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let notes = lowered(text).notes;
    let notes: Vec<&str> = notes.iter().map(String::as_str).collect();
    assert_eq!(notes, expected, "{text}");
}

const READ: &str = "<operation type='read' config='containers=c(1);objects=c(1)'/>";

#[test]
fn what_is_unknown_is_passed_over_and_told() {
    check(
        "<workload name='w' foo='1' xmlns='x' xmlns:y='z'>\n<bogus><deeper a='1'/></bogus>\n\
         <storage type='none' config='speed=9' extra=''/>\n<workflow name='f'>\n\
         <workstage name='s' id='3'>\n<work name='m' workers='1' runtime='1' id='w1' ratio='50'\n \
         type='whatever'>text\n<operation type='read' id='op1' weight='1' \
         config='containers=c(1);objects=c(1);colour=red;junk;hashcheck=true;histogram=false'/>\n\
         </work></workstage></workflow></workload>",
        &[
            "line 1: attribute `foo` of workload is unknown and ignored",
            "line 2: element `bogus` in workload is unknown and ignored",
            "line 3: attribute `extra` of storage is unknown and ignored",
            "line 3: the key `speed` is unknown and ignored",
            "line 4: attribute `name` of workflow is unknown and ignored",
            "line 5: attribute `id` of workstage is unknown and ignored",
            "line 6: attribute `id` of work is unknown and ignored",
            "line 6: attribute `ratio` of work is unknown and ignored",
            "line 7: text inside of work is ignored",
            "line 7: work of type `whatever` is taken as normal work, as there",
            "line 8: attribute `weight` of operation is unknown and ignored",
            "line 8: the key `colour` is unknown and ignored",
            "line 8: `junk` has no `=` and is ignored, as there",
            "line 8: `hashcheck` is not a parameter, so nothing is checked, as in COSBench: write \
            hashCheck",
            "line 8: `histogram` is ignored: there are always percentiles",
        ],
    );
}

#[test]
fn notes_have_an_end() {
    let many: String = (0..2_000).map(|number| format!("<x{number}/>")).collect();
    let text = of_works(&work(READ)).replace("<workflow>", &format!("{many}<workflow>"));
    let notes = lowered(&text).notes;
    assert_eq!((notes.len(), notes[500].as_str()), (501, "1500 more notes"));
}

#[test]
fn scripts_are_only_text() {
    let text = of_works(&work(READ))
        .replace("name=\"w\"", "name=\"$(reboot)&lt;script>\" trigger=\"a.sh(1,2)\"")
        .replace("name=\"main\"", "name=\"`x`\" trigger=\"b.sh\"");
    let workload = read(text.as_bytes()).unwrap();
    assert_eq!(
        (workload.name.as_str(), workload.trigger.as_deref()),
        ("$(reboot)<script>", Some("a.sh(1,2)"))
    );
    check(
        &text,
        &[
            "line 1: `trigger` is ignored: no scripts are run on agents",
            "line 4: `trigger` is ignored: no scripts are run on agents",
        ],
    );
    assert!(layout::config_xml(&workload).contains("name=\"$(reboot)&lt;script>\""));
}

#[test]
fn limits_that_are_not_what_they_seem() {
    let of = |attributes: &str| {
        of_works(&format!("<work name='m' workers='8' {attributes}>{READ}</work>"))
    };
    check(
        &of("totalOps='5'"),
        &["line 5: totalOps=5 is less than 8 workers: so many operations are done, where \
                COSBench goes on without end"],
    );
    check(&of("totalOps='100'"), &["line 5: totalOps=100 are done in all, where COSBench does 96"]);
    check(&of("totalOps='80'"), &[]);
    check(
        &of("totalOps='8' rampup='1'"),
        &["line 5: rampup and rampdown are ignored without runtime, as there"],
    );
    check(
        &of("totalOps='8' rampup='1' runtime='9'"),
        &["line 5: operations of the rampup count for totalOps too"],
    );
    check(&of("runtime='9' maxIOPS='1' maxBW='1'"), &["line 5: maxBW is ignored beside maxIOPS"]);
    check(
        &of_works("<work type='init' workers='1' runtime='9' config='containers=r(1,2)'/>"),
        &["line 5: `runtime` of init work is ignored, as there: it ends when done"],
    );
}

#[test]
fn values_that_are_not_what_they_seem() {
    let s3 = "<storage type='s3' config='endpoint=http://h'/>";
    let write = |more: &str| {
        let config = format!("containers=c(1);objects=c(1);{more}");
        work(&format!("<operation type='write' config='{config}'/>"))
    };
    check(
        &of_storage(s3, &write("sizes=c(4)KiB")),
        &["line 5: KiB, MiB and GiB are powers of 1024 here; COSBench takes such numbers for \
                bytes"],
    );
    check(
        &of_storage(s3, &write("sizes=c(4)KB;chunked=true")),
        &["line 5: `chunked` breaks S3 there (411); here the length is always stated"],
    );
    check(&of_storage(s3, &write("sizes=c(4)KB;chunked=false")), &[]);
    check(
        &of_works(&write("sizes=r(1,4)KB")),
        &["line 5: sizes by r or s are drawn, each as often as the next"],
    );
    check(
        &of_storage(s3, &work("<operation type='list' config='containers=c(1)'/>")),
        &["line 5: `list` does nothing with S3 there and counts as a success; here containers \
                are listed"],
    );
    check(
        &of_works(&work("<operation type='list' config='containers=c(1);objects=c(1)'/>")),
        &["line 5: `list` of containers and objects asks for an object's properties, as with \
                Swift there"],
    );
}

#[test]
fn reads_of_what_is_not_there() {
    let prepared = |range: &str, read: &str, beside: &str| {
        of_stages(&format!(
            "<workflow>\n<workstage name='p'>\n<work type='prepare' workers='1' \
                config='containers=r(1,2);objects={range};sizes=c(1)KB'/>\n\
             </workstage>\n<workstage name='m'>\n{}\n</workstage></workflow>",
            work(&format!(
                "<operation type='read' ratio='50' \
                 config='containers=u(1,2);objects={read}'/>{beside}"
            ))
        ))
    };
    let write = "<operation type='write' ratio='50' \
        config='containers=c(1);objects=u(900,901);sizes=c(1)KB'/>";
    check(&prepared("r(1,9)", "u(1,9)", write), &[]);
    check(
        &prepared("r(1,9)", "u(2,10)", write),
        &["line 7: it reads objects of which no earlier stage writes some"],
    );
    check(
        &prepared("r(1,9)", "u(20,30)", write),
        &["line 7: it reads objects that no earlier stage writes: have they been there before?"],
    );
    let delete = "<operation type='delete' ratio='50' config='containers=c(1);objects=u(9,12)'/>";
    check(
        &prepared("r(1,9)", "u(1,9)", delete),
        &["line 7: it deletes objects that are read in the same stage, so reads may find none"],
    );
    // Without any write they were there before.
    check(&of_works(&work(READ)), &[]);
}

#[test]
fn drivers_that_nobody_knows() {
    let text = of_works(&work(READ).replace("workers", "driver='d9' workers"));
    let workload = read(text.as_bytes()).unwrap();
    assert_eq!(workload.unknown_drivers(&["d9"]), Vec::<String>::new());
    assert_eq!(
        workload.unknown_drivers(&["d1", "d2"]),
        ["driver `d9` is not one of d1, d2: its works are divided among all, as in COSBench"]
    );
    assert!(workload.unknown_drivers(&[])[0].starts_with("driver `d9` is not one of none"));
}
