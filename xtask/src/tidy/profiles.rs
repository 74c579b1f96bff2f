//! Where the engine's loops become code is built for speed: what is generic is built at the level
//! of the crate that says which types it is of, and what is optimised as one unit at that of the
//! last crate.

use super::Tree;

/// The packages that must be fast in the profiles of what people run, and why.
const MUST_BE_FAST: [(&str, &str, &str); 3] = [
    ("release", "plimsoll-conduct", "the loops of the engine are built there"),
    ("dist", "plimsoll-conduct", "the loops of the engine are built there"),
    ("dist", "plimsoll", "everything is optimised once more there, as one unit"),
];
/// The levels that do not hold size above speed.
const FAST: [&str; 2] = ["2", "3"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let Some(manifest) = tree.get("Cargo.toml") else { return Vec::new() };
    let mut findings = Vec::new();
    for (profile, package, why) in MUST_BE_FAST {
        let section = format!("[profile.{profile}.package.{package}]");
        let level = level(manifest, &section);
        if level.is_none_or(|level| !FAST.contains(&level)) {
            let level = level.unwrap_or("no level");
            findings
                .push(format!("Cargo.toml: {section} has {level}: it must be 2 or 3, as {why}"));
        }
    }
    findings
}

/// Returns the level that a section of the manifest sets.
fn level<'a>(manifest: &'a str, section: &str) -> Option<&'a str> {
    let after = manifest.lines().skip_while(|line| *line != section).skip(1);
    let mut lines = after.take_while(|line| !line.starts_with('['));
    Some(lines.find_map(|line| line.strip_prefix("opt-level = "))?.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crate_with_the_loops_may_not_be_built_for_size() {
        let with_last = |release: &str, dist: &str, last: &str| {
            let text = format!(
                "[profile.release]\nopt-level = 2\n\n[profile.release.package.plimsoll-conduct]\n\
                 {release}\n[profile.dist.package.plimsoll-conduct]\n{dist}\n\
                 [profile.dist.package.plimsoll]\n{last}\n[profile.dev]\nopt-level = 3\n"
            );
            check(&Tree::of(&[("Cargo.toml", &text)]))
        };
        let findings = |release: &str, dist: &str| with_last(release, dist, "opt-level = 2");
        assert_eq!(findings("opt-level = 3", "opt-level = 2"), Vec::<String>::new());
        let small = findings("opt-level = \"s\"", "opt-level = 2");
        assert!(small[0].contains("release") && small[0].contains("has s:"), "{small:?}");
        let unsaid = findings("opt-level = 3", "strip = true");
        assert!(unsaid[0].contains("dist") && unsaid[0].contains("no level"), "{unsaid:?}");
        let last = with_last("opt-level = 3", "opt-level = 2", "opt-level = \"z\"");
        assert!(last[0].contains("[profile.dist.package.plimsoll] has z"), "{last:?}");
    }

    #[test]
    fn that_crate_does_run_stages() {
        let tree = Tree::load().unwrap();
        let mut files = tree.rust().filter(|file| file.path.starts_with("crates/conduct/src/"));
        assert!(files.any(|file| file.text.contains(" run_stage(")));
    }
}
