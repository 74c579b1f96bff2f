//! Inside the crates that hold the road, no module may use one that uses it.

use std::collections::{BTreeMap, BTreeSet};

use super::Tree;
use super::mask::split;

/// The crates that are looked at.
const CRATES: [&str; 4] = ["engine", "conduct", "results", "cli"];

/// By module, those that it uses; a module is what lies directly below `src`, with all inside it.
type Uses = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let circle = |of: &&str| {
        let left = circle(uses(tree, of));
        let names: Vec<&str> = left.keys().map(String::as_str).collect();
        (!names.is_empty()).then(|| {
            format!("crates/{of}: modules use each other in a circle: {}", names.join(", "))
        })
    };
    CRATES.iter().filter_map(circle).collect()
}

fn uses(tree: &Tree, of: &str) -> Uses {
    let root = format!("crates/{of}/src/");
    let mut uses = Uses::new();
    for file in tree.rust() {
        let Some(inside) = file.path.strip_prefix(&root) else { continue };
        let module = inside.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if inside.ends_with("tests.rs") || ["lib", "main"].contains(&module) {
            continue;
        }
        let code = split(&file.text).code;
        let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let names = code.split("crate::").skip(1).flat_map(named_first);
        uses.entry(module.to_owned()).or_default().extend(names.map(str::to_owned));
    }
    for (module, used) in &mut uses {
        used.remove(module);
    }
    uses
}

/// Returns the first name of each path that follows `crate::`, one or several in braces.
fn named_first(rest: &str) -> Vec<&str> {
    fn name(text: &str) -> &str {
        let text = text.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        &text[..end]
    }
    let Some(list) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut begin, mut names) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&list[begin..at]));
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

/// Returns the modules that lie on a circle or between two.
fn circle(mut uses: Uses) -> Uses {
    loop {
        let modules: BTreeSet<String> = uses.keys().cloned().collect();
        let used: BTreeSet<String> = uses.values().flatten().cloned().collect();
        for of in uses.values_mut() {
            of.retain(|name| modules.contains(name));
        }
        uses.retain(|module, of| !of.is_empty() && used.contains(module));
        if uses.len() == modules.len() {
            return uses;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_of_modules_is_found() {
        let of = |ui: &str| {
            let args = "use crate::{ui::{Ui, Form}, said};\nfn a() { crate::flags::shown() }";
            let tests = "#[cfg(test)]\nmod tests {\n    use crate::args::Args;\n}\n";
            check(&Tree::of(&[
                ("crates/cli/src/main.rs", "use crate::args::Args;"),
                ("crates/cli/src/args.rs", args),
                ("crates/cli/src/args/tests.rs", "use crate::said::Said;"),
                ("crates/cli/src/said.rs", "// crate::args\nconst A: &str = \"crate::args\";"),
                ("crates/cli/src/ui/draw.rs", ui),
                ("crates/cli/src/flags.rs", tests),
            ]))
        };
        assert_eq!(of("use crate::flags;"), [""; 0]);
        assert_eq!(
            of("use crate::{flags, args};"),
            ["crates/cli: modules use each other in a circle: args, ui"]
        );
    }
}
