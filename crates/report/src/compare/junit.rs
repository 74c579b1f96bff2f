//! The gates of a comparison as JUnit XML, for build servers: a test case for each gate and kind.

use std::io;

use plimsoll_analysis::compare::{GateResult, Outcome};
use quick_xml::events::BytesText;
use quick_xml::writer::Writer;

use super::{doubt_text, found, place_name};
use crate::table::harmless;

const NAME: &str = "plimsoll compare";

/// Returns the document, which ends with a line feed.
///
/// A broken gate is a failure, one that cannot be told is an error of type `inconclusive`.
pub fn junit(gates: &[GateResult]) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut writer, gates).expect("memory takes what is written to it");
    let body = String::from_utf8(writer.into_inner()).expect("only text was written");
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n")
}

fn write(writer: &mut Writer<Vec<u8>>, gates: &[GateResult]) -> io::Result<()> {
    let count = |of: fn(&Outcome) -> bool| gates.iter().filter(|gate| of(&gate.outcome)).count();
    let tests = gates.len().to_string();
    let failures = count(|outcome| *outcome == Outcome::Worse).to_string();
    let errors = count(|outcome| matches!(outcome, Outcome::Inconclusive(_))).to_string();
    let counts = [
        ("name", NAME),
        ("tests", tests.as_str()),
        ("failures", failures.as_str()),
        ("errors", errors.as_str()),
    ];
    let suites = writer.create_element("testsuites").with_attributes(counts);
    suites.write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attributes(counts);
        suite.write_inner_content(|writer| gates.iter().try_for_each(|gate| case(writer, gate)))?;
        Ok(())
    })?;
    Ok(())
}

fn case(writer: &mut Writer<Vec<u8>>, gate: &GateResult) -> io::Result<()> {
    let kind = place_name(gate.of.as_deref(), gate.kind);
    let (name, found) = (harmless(&gate.gate), found(gate));
    let attributes = [("classname", kind.as_str()), ("name", name.as_str())];
    let case = writer.create_element("testcase").with_attributes(attributes);
    let (element, of_type, message) = match gate.outcome {
        Outcome::Pass => {
            case.write_empty()?;
            return Ok(());
        }
        Outcome::Worse => ("failure", "worse", format!("{name} is broken: {found}")),
        Outcome::Inconclusive(doubt) => ("error", "inconclusive", doubt_text(doubt).to_owned()),
    };
    case.write_inner_content(|writer| {
        let attributes = [("type", of_type), ("message", message.as_str())];
        let element = writer.create_element(element).with_attributes(attributes);
        element.write_text_content(BytesText::new(&format!("{kind} {name}: {found}")))?;
        Ok(())
    })?;
    Ok(())
}
