//! Whatever is written, the answer is a workload or a sentence.

use proptest::prelude::*;

use super::*;

/// Reads and lowers a text. What is lowered is sound, or is refused by a field's name.
fn read_all(text: &[u8]) {
    let workload = match read(text) {
        Ok(workload) => workload,
        Err(refused) => return assert!(!refused.more.is_empty()),
    };
    _ = layout::config_xml(&workload);
    match lower(&workload, &Options::default()) {
        Ok(lowered) => {
            assert_eq!(lowered.stages.len(), lowered.file.stages.len());
            if let Err(refused) = lowered.file.check() {
                assert!(!refused.to_string().is_empty());
            }
        }
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
}

fn seed() -> &'static str {
    include_str!("../../../testdata/cosbench/xml/seed-alluxio-1.xml")
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
    }

    #[test]
    fn any_xml(text in "(<[/!?]?[a-z]{1,3}( [a-z]{1,2}=['\"][a-z&;#<é]{0,5}['\"])?/?>|[a-z \
        é&;]{0,4}|<!--|-->|<!\\[CDATA\\[|\\]\\]>){0,40}") {
        read_all(text.as_bytes());
    }

    #[test]
    fn a_file_with_a_piece_changed(at in 0_usize..1_191, length in 0_usize..60, with in "[ \
        -~é\n]{0,20}") {
        let text = seed();
        let end = (at + length).min(text.len());
        let at = at.min(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(end) {
            read_all(format!("{}{with}{}", &text[..at], &text[end..]).as_bytes());
        }
    }

    #[test]
    fn any_config(
        config in concat!(
            "(containers|objects|sizes|cprefix|osuffix|content|hashCheck|files|fileselection)=",
            "([curshx]\\(?[0-9,|]{0,9}\\)?[KMGTi]{0,2}B?|[ -~&&[^<&\"]]{0,8})",
            "(;[a-zA-Z]{0,9}=?[0-9a-z(),]{0,9}){0,4}",
        ),
        kind in "read|write|delete|list|filewrite|init|prepare|cleanup|dispose|head",
    ) {
        let config = format!("containers=r(1,4);objects=r(1,9);sizes=c(1)KB;{config}");
        let operation = format!("<operation type=\"{kind}\" config=\"{config}\"/>");
        read_all(of_works(&work(&operation)).as_bytes());
        let work = format!("<work type=\"{kind}\" workers=\"3\" config=\"{config}\"/>");
        read_all(of_works(&work).as_bytes());
    }

    #[test]
    fn any_attribute(
        name in concat!(
            "name|type|workers|interval|division|runtime|rampup|rampdown|totalOps|totalBytes|",
            "driver|afr|maxIOPS|maxBW",
        ),
        value in "[-+0-9a-z]{0,12}",
    ) {
        let read = "<operation type='read' config='containers=u(1,9);objects=r(1,9)'/>";
        let rest = ["name='m'", "workers='2'", "runtime='9'"];
        let rest: Vec<&str> = rest.into_iter().filter(|other| !other.starts_with(&name)).collect();
        let rest = rest.join(" ");
        read_all(of_works(&format!("<work {rest} {name}='{value}'>{read}</work>")).as_bytes());
    }

    #[test]
    fn any_storage(
        kind in "s3|swift|mock|none|sio|oss|x",
        config in "([a-z_]{0,12}=[-a-z0-9:/.@]{0,12};?){0,5}",
        auth in "none|swauth|keystone|mock|httpauth|x",
    ) {
        let read = "<operation type='read' config='containers=u(1,9);objects=r(1,9)'/>";
        let storage = format!("<storage type='{kind}' config='{config}'/>");
        let auth = format!("<auth type='{auth}' config='{config}'/>");
        read_all(of_storage(&format!("{storage}{auth}"), &work(read)).as_bytes());
    }
}
