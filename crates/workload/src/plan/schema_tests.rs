//! The committed JSON schema is that of the types.

use super::*;

#[test]
fn the_schema_is_the_committed_one() {
    let fresh = format!("{:#}\n", serde_json::Value::from(WorkloadFile::json_schema()));
    plimsoll_testkit::check_format("workload-2.json", &fresh);
}

#[test]
fn json_is_read_as_yaml_is() {
    for (name, text) in example_tests::examples() {
        let file = WorkloadFile::from_yaml(&name, &text).unwrap();
        let json = serde_json::to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<WorkloadFile>(&json).unwrap(), file, "{name}");
    }
    let refused = serde_json::from_str::<WorkloadFile>(
        r#"{"schema": "plimsoll.workload/2", "stages": [],
            "sets": {"o": {"count": 1, "sise": 2}}}"#,
    );
    let text = refused.unwrap_err().to_string();
    assert!(
        text.starts_with("field `sets.o.sise`: unknown field; allowed are on, count"),
        "{text}"
    );
}
