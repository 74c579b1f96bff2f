//! Everything that COSBench refuses, in its words, and what it answers with a trace of its stack.

use super::*;

/// Checks the first line of a refusal, and that the rest says more.
#[track_caller]
fn check(text: &str, words: &str, more: &str) {
    let said = refusal(text);
    let (first, rest) = said.split_once('\n').unwrap_or(("", &said));
    assert_eq!(first, words, "{said}\n{text}");
    assert!(rest.contains(more), "{said}\n{text}");
}

const CANNOT: &str = "cannot parse the xml configuration from <stream>, due to ";

#[track_caller]
fn check_parsing(text: &str, why: &str, more: &str) {
    check(text, &format!("{CANNOT}{why}"), more);
}

const READ: &str = "<operation type=\"read\" config=\"containers=u(1,2);objects=u(1,10)\"/>";

fn attribute(attribute: &str) -> String {
    of_works(&format!("<work name=\"m\" workers=\"2\" runtime=\"4\" {attribute}>{READ}</work>"))
}

#[test]
fn what_is_no_xml() {
    for (text, why) in [
        ("", "Premature end of file: there is no element"),
        ("hello", "Content is not allowed outside of the root element"),
        ("<workload name='w'>", "the document ends inside of `workload`"),
        ("<workload name='w'><workflow></workload>", "ill-formed document"),
        ("<workload/><workload/>", "there is a second root element"),
        ("<workload/>x", "Content is not allowed outside of the root element"),
        ("<workload a='1' a='2'/>", "Attribute \"a\" was already specified for element"),
        ("<workload a=1/>", "attribute value must be enclosed"),
        ("<work load a='1'/>", "position"),
        ("<workload a='&nbsp;'/>", "The entity \"nbsp\" was referenced, but not declared."),
        ("<workload a='&#0;'/>", "The entity \"#0\" was referenced, but not declared."),
        ("<workload>&x;</workload>", "The entity \"x\" was referenced, but not declared."),
        ("<workload a='a&b'/>", "an `&` in attribute \"a\" begins no reference"),
        ("<other/>", "the root element is `other`"),
        ("<!DOCTYPE workload []><workload name='w'/>", "a document type is not allowed"),
        (
            "<!DOCTYPE a [<!ENTITY b \"&c;&c;\"><!ENTITY c SYSTEM \"file:///etc/passwd\">]>\
             <workload name='&b;'/>",
            "a document type is not allowed",
        ),
    ] {
        let said = refusal(text);
        assert!(said.starts_with(CANNOT) && said.contains(why), "{text}: {said}");
    }
    let said = refusal(
        "<workload name='w'>\n  <storage type='s3' config='accesskey=<key>;x=1'/></workload>",
    );
    assert!(
        said.ends_with(
            "`<key>` is a placeholder: put the value in its place, or write `&lt;` for `<`"
        ),
        "{said}"
    );
    assert!(said.contains("\nline 2, column 22: "), "{said}");
}

#[test]
fn what_is_too_large_or_too_deep() {
    let deep = "<a>".repeat(100_000);
    assert!(refusal(&deep).contains("elements are nested more than 64 deep"));
    let many = format!("<workload name='w'>{}</workload>", "<a/>".repeat(10_001));
    assert!(refusal(&many).contains("there are more than 10000 elements"));
    let wide: String = (0..101).map(|number| format!(" a{number}=''")).collect();
    assert!(refusal(&format!("<workload{wide}/>")).contains("more than 100 attributes"));
    let large = vec![b' '; xml::BYTES_MAX + 1];
    let said = read(&large).unwrap_err().to_string();
    assert!(said.contains("the file is larger than 16 MiB"), "{said}");
    // What every operation inherits is counted as often as it is inherited.
    let work = "<work type='init' workers='1' config='containers=r(1,2)'/>";
    let many = format!(
        "<workload name='w' config='x={}'><workflow><workstage \
            name='s'>{}</workstage></workflow></workload>",
        "y".repeat(1 << 20),
        work.repeat(100)
    );
    assert!(refusal(&many).contains("the configs are too long with what they inherit"));
}

#[test]
fn numbers_of_attributes() {
    check_parsing(&attribute("rampup=\"two\""), "For input string: \"two\"", "rampup=\"two\"");
    check_parsing(&attribute("totalOps=\"4294967296\""), "For input string: \"4294967296\"", "");
    check_parsing(&attribute("totalBytes=\"x\""), "For input string: \"x\"", "line 5, column");
    check_parsing(&attribute("afr=\"1000001\""), "afr should be at 0 to 1000000 range", "afr=");
    check_parsing(&attribute("afr=\"-1\""), "afr should be at 0 to 1000000 range", "");
    for (name, called) in [
        ("interval", "interval"),
        ("rampup", "ramp up time"),
        ("rampdown", "ramp down time"),
        ("totalOps", "total ops"),
        ("totalBytes", "total bytes"),
    ] {
        let text = attribute(&format!("{name}=\"-1\""));
        check_parsing(&text, &format!("illegal {called}: -1"), "write at least");
    }
    check_parsing(&attribute("interval=\"0\""), "illegal interval: 0", "interval=\"0\"");
    let text = attribute("").replace("workers=\"2\"", "workers=\"0\"");
    check_parsing(&text, "illegal workers: 0", "write at least 1");
    let text = attribute("").replace("runtime=\"4\"", "runtime=\"-4\"");
    check_parsing(&text, "illegal runtime: -4", "");
    for ratio in ["101", "-1"] {
        let text =
            attribute("").replace("type=\"read\"", &format!("type=\"read\" ratio=\"{ratio}\""));
        check_parsing(&text, &format!("illegal operation ratio: {ratio}"), "");
    }
}

#[test]
fn parts_that_are_missing() {
    check("<workload name='w'/>", "workload must have its workflow", "<workflow>");
    check(
        "<workload><workflow><workstage name='s'><work type='init' workers='1' \
         config='containers=r(1,1)'/></workstage></workflow></workload>",
        "workload name cannot be empty",
        "line 1",
    );
    // There a null pointer.
    check(&of_stages("<workflow/>"), "workflow must have stages", "the workflow is empty");
    check(
        &of_stages("<workflow><workstage name=\"s\"/></workflow>"),
        "stage must have works",
        "stage `s` needs at least one <work>",
    );
    check(
        &of_stages("<workflow><workstage><work type='init' workers='1'/></workstage></workflow>"),
        "stage name cannot be empty",
        "",
    );
    check_parsing(
        &of_stages("<workflow><workstage name=\"a;b\"/></workflow>"),
        "stage name cannot contain delimiter ';'",
        "take another name",
    );
    check_parsing(
        &of_stages("<workflow><workstage name=\"a\" closuredelay=\"-1\"/></workflow>"),
        "closure delay cannot be negative",
        "closuredelay=\"-1\"",
    );
    check(
        &of_works(&format!("<work name=\"m\" runtime=\"4\">{READ}</work>")),
        "must specify 'workers' for a work",
        "work `m`",
    );
    check(
        &of_works("<work type=\"init\" config=\"containers=r(1,2)\"/>"),
        "must specify 'workers' for a work",
        "work `init`",
    );
    check(
        &of_works(&format!("<work workers=\"1\" runtime=\"4\">{READ}</work>")),
        "work name cannot be empty",
        "name=",
    );
    check(
        &of_works(&format!("<work name=\"m\" workers=\"1\">{READ}</work>")),
        "no work limits detectd, either runtime, total ops or total bytes",
        "work `m` would never end",
    );
    // There a trace of the stack.
    check(&of_works(&work("")), "work must have operations", "work `m` has no <operation>");
    check(
        &of_works("<work name=\"m\" type=\"prepar\" workers=\"1\" runtime=\"4\"/>"),
        "work must have operations",
        "its type `prepar` is not one of init, prepare, mprepare, cleanup, dispose, delay",
    );
    let two = |first: u32, second: u32| {
        let operation = |ratio| READ.replace("/>", &format!(" ratio=\"{ratio}\"/>"));
        of_works(&work(&format!("{}{}", operation(first), operation(second))))
    };
    check(&two(80, 30), "op ratio should sum to 100", "the ratios of work `m` add up to 110");
    check(&two(10, 0), "op ratio should sum to 100", "add up to 10");
    assert_eq!(read(two(100, 0).as_bytes()).unwrap().stages[0].works[0].operations.len(), 1);
    for (element, called) in [
        ("<auth type=\"\"/>", "auth"),
        ("<storage config=\"x=1\"/>", "storage"),
        ("<storage type=\" \"/>", "storage"),
    ] {
        let text = of_storage(element, &work(READ));
        check(&text, &format!("{called} type cannot be empty"), "type=\"...\"");
    }
    check(&of_works(&work("<operation/>")), "operation type cannot be empty", "");
    check(&attribute("type=\"\""), "work type cannot be empty", "leave `type` out");
    check(&attribute("division=\"worker\""), "unrecognized division: worker", "none, container");
}

/// Returns a workload of one read or write whose config is this.
fn of(kind: &str, config: &str) -> String {
    of_works(&work(&format!("<operation type=\"{kind}\" config=\"{config}\"/>")))
}

fn scan(kind: &str, config: &str) -> String {
    of_works(&format!("<work type=\"{kind}\" workers=\"2\" config=\"{config}\"/>"))
}

#[test]
fn what_only_drivers_find() {
    for (kind, known) in [("head", true), ("append", false), ("Read", false), ("delay", false)] {
        let more = if known { "type=\"sio\"" } else { "operations are read, write" };
        check(
            &of(kind, "containers=c(1);objects=c(1)"),
            &format!("unrecognized operation: {kind}"),
            more,
        );
    }
    for (text, key) in [
        (of("read", "objects=c(1)"), "containers"),
        (of("read", "containers=c(1)"), "objects"),
        (of("write", "containers=c(1);objects=c(1)"), "sizes"),
        (of("list", "objects=c(1)"), "containers"),
        (of("filewrite", "containers=c(1);fileselection=s"), "files"),
        (of("filewrite", "containers=c(1);files=/x"), "fileselection"),
        (scan("init", ""), "containers"),
        (scan("prepare", "containers=r(1,2);sizes=c(1)KB"), "objects"),
        (scan("prepare", "containers=r(1,2);objects=r(1,2)"), "sizes"),
    ] {
        check(
            &text,
            &format!("no such key defined: {key}"),
            &format!("the config needs `{key}=...`"),
        );
    }
    for (selector, words) in [
        ("x(1,2)", "unrecognized distribution: x(1,2)"),
        ("u(1,2", "unrecognized distribution: u(1,2"),
        ("5", "unrecognized distribution: 5"),
        ("", "unrecognized distribution: "),
        ("µ(1,2)", "unrecognized distribution: µ(1,2)"),
        ("U(1,2)", "unrecognized distribution: U(1,2)"),
        ("u(1, 10)", "illegal uniform distribution pattern: u(1, 10)"),
        ("u(0,10)", "illegal uniform distribution pattern: u(0,10)"),
        ("u(9,1)", "illegal uniform distribution pattern: u(9,1)"),
        ("u(1,2147483648)", "illegal uniform distribution pattern: u(1,2147483648)"),
        ("u(-1,2)", "illegal uniform distribution pattern: u(-1,2)"),
        ("c(x)", "illegal constant distribution pattern: c(x)"),
        ("c()", "illegal constant distribution pattern: c()"),
        ("r(1)", "illegal iteration distribution pattern: r(1)"),
        ("r(0,0)", "illegal iteration distribution pattern: r(0,0)"),
        ("1-x", "illegal iteration distribution pattern: 1-x"),
        ("s(2,1)", "illegal sequential distribution pattern: s(2,1)"),
        ("h(1|2)", "illegal histogram distribution pattern: h(1|2)"),
        ("h(1|2|0)", "illegal histogram distribution pattern: h(1|2|0)"),
        ("h(2|1|1)", "illegal histogram distribution pattern: h(2|1|1)"),
        ("h(1|2|3,)", "illegal histogram distribution pattern: h(1|2|3,)"),
    ] {
        let text = of("read", &format!("containers=c(1);objects={selector}"));
        check(&text, words, &format!("`objects={selector}`: "));
    }
    for selector in ["c(1)", "u(1,2)", "s(1,2)", "h(1|2|3)", "x", "r(1,2"] {
        let words = format!("unrecognized range expression: {selector}");
        check(&scan("init", &format!("containers={selector}")), &words, "write r(1,32)");
        let cleanup = format!("containers=r(1,2);objects={selector}");
        check(&scan("cleanup", &cleanup), &words, "`objects=");
    }
    for sizes in ["c(4)", "c(4)kb", "c(4)TB", "c(4)K", ""] {
        let text = of("write", &format!("containers=c(1);objects=c(1);sizes={sizes}"));
        check(&text, &format!("unrecognized size unit: {sizes}"), "B, KB, MB and GB");
    }
    check(
        &of("write", "containers=c(1);objects=c(1);sizes=(4)KB"),
        "unrecognized distribution: (4)",
        "`sizes=(4)`",
    );
}

#[test]
fn what_is_refused_here_only() {
    for (text, said) in [
        (
            of_storage(
                "<storage type='s3' config='endpoint=http://s'/>",
                &work("<operation type='list'/>"),
            ),
            "`list` without containers lists an account",
        ),
        (
            of("write", "containers=c(1);objects=c(1);sizes=c(1)KB;chunked=maybe"),
            "`chunked=maybe`: write true or false",
        ),
        (
            of("write", "containers=c(1);objects=c(1);sizes=c(1)KB;hashCheck=2"),
            "`hashCheck=2`: write true or false",
        ),
        (
            of("filewrite", "containers=c(1);files=/x;fileselection=c"),
            "`fileselection=c`: write s, r or u",
        ),
        (
            of_works(&work(
                "<operation type='prepare' ratio='50' \
                 config='containers=r(1,2);objects=r(1,2);sizes=c(1)KB'/>\
                 <operation type=\"read\" ratio=\"50\" config=\"containers=c(1);objects=c(1)\"/>",
            )),
            "`prepare` goes through all of its objects once",
        ),
        (
            of_stages(
                "<workflow><workstage name='s'><work type='init' workers='1' \
                    config='containers=r(1,2)'/></workstage></workflow><workflow/>",
            ),
            "there is a second `workflow`",
        ),
    ] {
        let refused = refusal(&text);
        assert!(refused.contains(said) && !refused.contains('\n'), "{refused}\n{text}");
    }
}

#[test]
fn encodings() {
    let named = |encoding: &str| {
        format!(
            "<?xml version=\"1.0\" encoding=\"{encoding}\"?>\n<workload name=\"w\" \
                description=\"né\">\
             <workflow><workstage name='s'><work type='init' workers='1' \
             config='containers=r(1,2)'/>\
             </workstage></workflow></workload>"
        )
    };
    let description = |bytes: &[u8]| read(bytes).unwrap().description.unwrap();
    let latin = |text: &str| text.chars().map(|letter| letter as u8).collect::<Vec<u8>>();
    assert_eq!(description(named("UTF-8").as_bytes()), "né");
    assert_eq!(description(format!("\u{feff}{}", named("UTF-8")).as_bytes()), "né");
    assert_eq!(description(named("GBK").as_bytes()), "né");
    assert_eq!(description(&latin(&named("ISO-8859-1"))), "né");
    let mut cp1252 = latin(&named("windows-1252"));
    let at = cp1252.iter().position(|byte| *byte == 0xe9).unwrap();
    cp1252[at] = 0x80;
    assert_eq!(description(&cp1252), "n€");
    for big in [true, false] {
        let units = named("UTF-16").encode_utf16().collect::<Vec<u16>>();
        let bytes =
            units.iter().flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() });
        let bytes: Vec<u8> = bytes.collect();
        assert_eq!(description(&bytes), "né");
        let mark: &[u8] = if big { &[0xfe, 0xff] } else { &[0xff, 0xfe] };
        assert_eq!(description(&[mark, &bytes].concat()), "né");
        assert!(read(&[mark, &bytes, &[0][..]].concat()).is_err());
    }
    let said = read(&latin(&named("UTF-8"))).unwrap_err().to_string();
    assert_eq!(
        said,
        "cannot parse the xml configuration from <stream>, due to Invalid byte 0xe9 of a UTF-8 \
         sequence.\nline 2, column 34: save the file in UTF-8, and write encoding=\"UTF-8\""
    );
    let said = read(&latin(&named("GBK"))).unwrap_err().to_string();
    assert!(said.contains("(`gbk`, as it is declared, is not read)"), "{said}");
}

#[test]
fn workloads_are_told_by_their_root() {
    for (text, is_it) in [
        ("<workload name='w'/>", true),
        ("\u{feff}<?xml version='1.0'?>\n<!-- <x> -->\n<!-- y --><workload>", true),
        ("<workload/>", true),
        ("<workloads/>", false),
        ("<!-- <workload>", false),
        ("name: x", false),
        ("", false),
        ("<?xml", false),
    ] {
        assert_eq!(is_workload(text), is_it, "{text}");
    }
}
