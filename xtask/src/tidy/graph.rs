//! The walls: which crate may know which, and that ARCHITECTURE.md draws them as they are.

use super::Tree;

/// Every crate of the plan with its floor; a dependency goes to a lower floor, never along one.
const FLOORS: [(&str, u8); 25] = [
    ("model", 0),
    ("stats", 1),
    ("workload", 1),
    ("driver", 1),
    ("foreign", 1),
    ("engine", 2),
    ("http", 2),
    ("record", 2),
    ("analysis", 2),
    ("driver-s3", 3),
    ("driver-file", 3),
    ("driver-seaweed", 3),
    ("driver-swift", 3),
    ("credentials", 3),
    ("oracle", 3),
    ("report", 3),
    ("telemetry", 3),
    ("seaweed-stand-in", 4),
    ("conduct", 4),
    ("dialects", 4),
    ("results", 4),
    ("fleet", 5),
    ("proof", 5),
    ("console", 5),
    ("cli", 6),
];
/// A dev-dependency: above everything it may use, below nothing.
const TESTKIT: &str = "testkit";
/// What the map says for the floor of a crate that stands outside of the house.
const OUTSIDE: &str = "–";

/// Other people's crates that a room must never know, by the start of their names.
const MUST_NOT_KNOW: [(&str, &[&str]); 20] = [
    ("model", &["tokio", "hyper", "arrow", "parquet"]),
    ("stats", &["tokio", "serde", "arrow", "parquet"]),
    ("workload", &["tokio", "quanta", "hyper"]),
    ("driver", &["hyper", "httparse", "rustls", "quick-xml", "s3s"]),
    ("foreign", &["tokio", "arrow", "parquet"]),
    ("engine", &["hyper", "httparse", "rustls", "quick-xml", "arrow", "parquet"]),
    ("http", &["quick-xml", "s3s", "serde", "arrow", "parquet"]),
    ("record", &["tokio", "hyper", "comfy-table"]),
    ("analysis", &["tokio", "arrow", "parquet", "comfy-table"]),
    ("report", &["tokio", "rustix"]),
    ("oracle", &["clap", "h2", "prost"]),
    ("seaweed-stand-in", &["clap", "plimsoll-driver"]),
    ("dialects", &["tokio", "clap", "rustix"]),
    ("telemetry", &["clap"]),
    ("credentials", &["clap", "plimsoll-driver"]),
    ("conduct", &["clap", "signal-hook"]),
    ("fleet", &["clap", "signal-hook", "plimsoll-http", "plimsoll-driver-s3"]),
    ("proof", &["clap"]),
    ("console", &["clap", "signal-hook", "plimsoll-driver", "plimsoll-http"]),
    ("results", &["clap", "tokio", "plimsoll-engine", "plimsoll-driver"]),
];
/// Only the rooms at the rim may use errors without a type.
const ANYHOW_ROOMS: [&str; 2] = ["cli", "xtask"];

/// One line of a manifest below a heading that ends in `dependencies`.
struct Dependency<'a> {
    is_dev: bool,
    line: &'a str,
    /// The package's name, such as `plimsoll-model`.
    name: &'a str,
}

/// Checks manifests and map.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let manifests: Vec<(&str, &str, &str)> = tree
        .0
        .iter()
        .filter_map(|file| Some((file.path.as_str(), room(&file.path)?, file.text.as_str())))
        .collect();
    let mut findings = Vec::new();
    for &(path, room, manifest) in &manifests {
        let mut note = |text: String| findings.push(format!("{path}: {text}"));
        if floor(room).is_none() && ![TESTKIT, "xtask"].contains(&room) {
            note(format!("the crate {room} has no floor; give it one in xtask's tidy::graph"));
        }
        if !manifest.contains("[lints]\nworkspace = true") {
            note("does not take the lints of the workspace".to_owned());
        }
        for dependency in dependencies(manifest) {
            for text in check_dependency(room, &dependency) {
                note(text);
            }
        }
    }
    let rooms: Vec<&str> = manifests.iter().map(|&(_, room, _)| room).collect();
    match tree.get("ARCHITECTURE.md") {
        Some(map) => findings.extend(check_map(map, &rooms)),
        None => findings.push("ARCHITECTURE.md: is missing".to_owned()),
    }
    findings
}

/// Returns the crate a manifest belongs to: the name of its folder.
fn room(path: &str) -> Option<&str> {
    let folder = path.strip_suffix("/Cargo.toml")?;
    let room = folder.strip_prefix("crates/").unwrap_or(folder);
    (!room.contains('/')).then_some(room)
}

fn floor(room: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|&(_, floor)| floor)
}

fn dependencies(manifest: &str) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    let mut heading = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix('[') {
            heading = text.trim_end_matches(']');
        } else if heading.ends_with("dependencies") && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            found.push(Dependency { is_dev: heading.ends_with("dev-dependencies"), line, name });
        }
    }
    found
}

fn check_dependency(room: &str, dependency: &Dependency<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    let Dependency { is_dev, line, name } = *dependency;
    // Tests may ask a crate for more, such as a clock that stands still.
    let is_from_root = line.strip_prefix(name).is_some_and(|rest| {
        // A crate that its own tests ask for more is not looked for in the registry.
        let asks = [" = { workspace = true, ", " = { path = \".\", "];
        let may_ask = is_dev && asks.iter().any(|begin| rest.starts_with(begin));
        may_ask || [".workspace = true", " = { workspace = true, optional = true }"].contains(&rest)
    });
    if !is_from_root {
        findings.push(format!("write `{name}.workspace = true` and keep the rest at the root"));
    }
    if name == "anyhow" && !is_dev && !ANYHOW_ROOMS.contains(&room) {
        findings.push("anyhow is for cli and xtask; give the errors a type".to_owned());
    }
    let unknown = MUST_NOT_KNOW.iter().filter(|(of, _)| *of == room).flat_map(|(_, names)| *names);
    if !is_dev && unknown.clone().any(|start| name.starts_with(start)) {
        findings.push(format!("{room} must never know {name}"));
    }
    let Some(lower) = name.strip_prefix("plimsoll-") else { return findings };
    let allowed = match (room, lower) {
        _ if is_dev => true,
        (_, TESTKIT) | ("xtask", _) => false,
        (TESTKIT, _) => true,
        _ => floor(lower) < floor(room),
    };
    if !allowed {
        findings.push(format!("{room} may not depend on {lower}: it is on no lower floor"));
    }
    findings
}

/// Checks that the map's table, `| floor | crate | …`, has every crate where it is, and no other.
fn check_map(map: &str, rooms: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    let is_floor = |cell: &str| cell == OUTSIDE || cell.parse::<u8>().is_ok();
    let rows: Vec<(&str, &str)> = map
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            Some((cells.next()?, cells.next()?.trim_matches(['`', '*'])))
        })
        .filter(|(cell, _)| is_floor(cell))
        .collect();
    for room in rooms {
        let cell = floor(room).map_or(OUTSIDE.to_owned(), |floor| floor.to_string());
        if !rows.contains(&(cell.as_str(), *room)) {
            findings.push(format!("ARCHITECTURE.md: the table has no row | {cell} | {room} |"));
        }
    }
    for (_, room) in rows.iter().filter(|(_, room)| !rooms.contains(room)) {
        findings.push(format!("ARCHITECTURE.md: the table has {room}, which is no crate"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(lines: &str) -> String {
        format!("[package]\n\n[lints]\nworkspace = true\n\n[dependencies]\n{lines}")
    }

    fn findings(path: &str, lines: &str) -> Vec<String> {
        let floor =
            room(path).and_then(floor).map_or(OUTSIDE.to_owned(), |floor| floor.to_string());
        let map =
            format!("| floor | crate |\n|---|---|\n| {floor} | `{}` | x |\n", room(path).unwrap());
        check(&Tree::of(&[("ARCHITECTURE.md", &map), (path, &manifest(lines))]))
    }

    #[test]
    fn dependencies_go_down() {
        let down = "plimsoll-model.workspace = true\nplimsoll-driver.workspace = true\n";
        assert_eq!(findings("crates/engine/Cargo.toml", down), [""; 0]);
        assert_eq!(
            findings("crates/engine/Cargo.toml", "plimsoll-http.workspace = true"),
            ["crates/engine/Cargo.toml: engine may not depend on http: it is on no lower floor"]
        );
        let dev = "[dev-dependencies]\nplimsoll-testkit.workspace = true";
        assert_eq!(findings("crates/engine/Cargo.toml", dev), [""; 0]);
        assert_eq!(findings("crates/cli/Cargo.toml", "plimsoll-testkit.workspace = true").len(), 1);
        assert_eq!(
            findings("crates/testkit/Cargo.toml", "plimsoll-oracle.workspace = true"),
            [""; 0]
        );
        assert_eq!(findings("xtask/Cargo.toml", "plimsoll-model.workspace = true").len(), 1);
    }

    #[test]
    fn heavy_crates_stay_out_and_versions_stay_at_the_root() {
        assert_eq!(findings("crates/model/Cargo.toml", "tokio.workspace = true").len(), 1);
        assert_eq!(findings("crates/report/Cargo.toml", "serde.workspace = true"), [""; 0]);
        assert_eq!(findings("crates/report/Cargo.toml", "anyhow.workspace = true").len(), 1);
        assert_eq!(findings("crates/cli/Cargo.toml", "anyhow = \"1\"").len(), 1);
        assert_eq!(
            findings("crates/cli/Cargo.toml", "a = { workspace = true, features = [] }").len(),
            1
        );
        let optional = "a = { workspace = true, optional = true }";
        assert_eq!(findings("crates/cli/Cargo.toml", optional), [""; 0]);
    }

    #[test]
    fn the_map_shows_every_crate_where_it_is() {
        let map = "| floor | crate | holds |\n|---|---|---|\n| 6 | cli | x |\n| 1 | http | x |\n\
                   | – | xtask | x |\n| 2 | engine | x |\n\n| what | room |\n| x | `engine` |\n";
        assert_eq!(
            check_map(map, &["cli", "http", "xtask", "testkit"]),
            [
                "ARCHITECTURE.md: the table has no row | 2 | http |",
                "ARCHITECTURE.md: the table has no row | – | testkit |",
                "ARCHITECTURE.md: the table has engine, which is no crate",
            ]
        );
        let missing = check(&Tree::of(&[("crates/cli/Cargo.toml", &manifest(""))]));
        assert_eq!(missing, ["ARCHITECTURE.md: is missing"]);
        let unknown = findings("crates/attic/Cargo.toml", "");
        assert_eq!(unknown.len(), 1, "{unknown:?}");
    }
}
