//! What a program says of how it was built.

use serde_json::Value;

use crate::harness::{oracle, printed, run, run_directory};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn version_and_record_say_how_the_program_was_built() {
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 put --obj.size 1KiB --duration 300ms --concurrent 1";
    let target = oracle();
    assert!(run(target.command(directory.path(), line)).status.success());
    let manifest = std::fs::read(run_directory(directory.path()).join("run.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let tool = &manifest["tool"];
    // Tests are built as `dev`, or `release` by those who want that.
    let profile = tool["profile"].as_str().unwrap();
    assert!(["dev", "release"].contains(&profile), "{profile}");
    let built_for = tool["built_for"].as_str().unwrap();
    assert!(built_for.starts_with(std::env::consts::ARCH), "{built_for}");
    let features: Vec<&str> = manifest["machine"]["cpu_features"]
        .as_array()
        .unwrap()
        .iter()
        .map(|feature| feature.as_str().unwrap())
        .collect();

    let version = printed(directory.path(), "--version");
    let lines: Vec<&str> = version.lines().collect();
    let [first, built, processor] = lines[..] else { panic!("{version}") };
    match tool["commit"].as_str() {
        Some(commit) => assert_eq!(first, format!("plimsoll {VERSION} ({commit})")),
        None => assert_eq!(first, format!("plimsoll {VERSION}")),
    }
    assert_eq!(built, format!("built     for {built_for}, profile {profile}"));
    let words = if features.is_empty() { "none".to_owned() } else { features.join(" ") };
    assert_eq!(processor, format!("processor {words}"));
    assert_eq!(printed(directory.path(), "-V").lines().collect::<Vec<_>>(), [first]);
}
