//! Where the engine's loops become code is built for speed: what is generic is built at the level
//! of the crate that says which types it is of.

use super::Tree;

/// The crate that runs stages with every driver there is.
const RUNS_STAGES: &str = "conduct";
/// The profiles of what people run.
const PROFILES: [&str; 2] = ["release", "dist"];
/// The levels that do not hold size above speed.
const FAST: [&str; 2] = ["2", "3"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let Some(manifest) = tree.get("Cargo.toml") else { return Vec::new() };
    let mut findings = Vec::new();
    for profile in PROFILES {
        let section = format!("[profile.{profile}.package.plimsoll-{RUNS_STAGES}]");
        let level = level(manifest, &section);
        if level.is_none_or(|level| !FAST.contains(&level)) {
            let level = level.unwrap_or("no level");
            findings.push(format!(
                "Cargo.toml: {section} has {level}: it must be 2 or 3, as the loops of the engine \
                 are built there"
            ));
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
        let findings = |release: &str, dist: &str| {
            let text = format!(
                "[profile.release]\nopt-level = 2\n\n[profile.release.package.plimsoll-conduct]\n\
                 {release}\n[profile.dist.package.plimsoll-conduct]\n{dist}\n[profile.dev]\n\
                 opt-level = 3\n"
            );
            check(&Tree::of(&[("Cargo.toml", &text)]))
        };
        assert_eq!(findings("opt-level = 3", "opt-level = 2"), Vec::<String>::new());
        let small = findings("opt-level = \"s\"", "opt-level = 2");
        assert!(small[0].contains("release") && small[0].contains("has s:"), "{small:?}");
        let unsaid = findings("opt-level = 3", "strip = true");
        assert!(unsaid[0].contains("dist") && unsaid[0].contains("no level"), "{unsaid:?}");
    }

    #[test]
    fn that_crate_does_run_stages() {
        let tree = Tree::load().unwrap();
        let sources = format!("crates/{RUNS_STAGES}/src/");
        let mut files = tree.rust().filter(|file| file.path.starts_with(&sources));
        assert!(files.any(|file| file.text.contains(" run_stage(")));
    }
}
