//! Where the engine's loops become code is built for speed: what is generic is built at the level
//! of the crate that says which types it is of, and what is optimised as one unit at that of the
//! last crate.

use super::Tree;

/// The packages that must be fast in what people run, where that is said, and why. The profile
/// `dist` inherits the levels of `release`.
const MUST_BE_FAST: [(&str, &str, &str); 2] = [
    (
        "[profile.release.package]",
        "plimsoll-conduct.opt-level = ",
        "the loops of the engine become code there",
    ),
    (
        "[profile.dist]",
        "package.plimsoll = { opt-level = ",
        "everything is optimised once more there, as one unit",
    ),
];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let Some(manifest) = tree.get("Cargo.toml") else { return Vec::new() };
    let mut findings = Vec::new();
    for (section, setting, why) in MUST_BE_FAST {
        let level = level(manifest, section, setting);
        // The levels that do not hold size above speed.
        if level.is_none_or(|level| !level.starts_with(['2', '3'])) {
            let level = level.unwrap_or("no level");
            findings.push(format!(
                "Cargo.toml: {section} {setting}{level}: it must be 2 or 3, as {why}"
            ));
        }
    }
    findings
}

/// Returns the level that a line of a section of the manifest sets.
fn level<'a>(manifest: &'a str, section: &str, setting: &str) -> Option<&'a str> {
    let after = manifest.lines().skip_while(|line| *line != section).skip(1);
    let mut lines = after.take_while(|line| !line.starts_with('['));
    lines.find_map(|line| line.strip_prefix(setting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crate_with_the_loops_may_not_be_built_for_size() {
        let findings = |conduct: &str, last: &str| {
            let text = format!(
                "[profile.release]\nopt-level = \"s\"\n\n[profile.release.package]\n\
                 a.opt-level = 2\n{conduct}\n[profile.dist]\npackage.plimsoll = {{ {last} }}\n"
            );
            check(&Tree::of(&[("Cargo.toml", &text)]))
        };
        let fast = "plimsoll-conduct.opt-level = 3 # as it has the loops";
        assert_eq!(findings(fast, "opt-level = 2"), Vec::<String>::new());
        let small = findings("plimsoll-conduct.opt-level = \"s\"", "opt-level = 2");
        assert!(small[0].contains("plimsoll-conduct.opt-level = \"s\": it must"), "{small:?}");
        let unsaid = findings(fast, "strip = true");
        assert!(unsaid[0].contains("dist") && unsaid[0].contains("no level"), "{unsaid:?}");
    }

    #[test]
    fn that_crate_does_run_stages() {
        let tree = Tree::load().unwrap();
        let mut files = tree.rust().filter(|file| file.path.starts_with("crates/conduct/src/"));
        assert!(files.any(|file| file.text.contains(" run_stage(")));
    }
}
