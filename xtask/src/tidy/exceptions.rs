//! The list of places that are over a size limit: it may only shrink.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// Where the list lies.
pub(super) const PATH: &str = "xtask/tidy-exceptions.txt";

/// What is over a limit, such as `function crates/x/src/y.rs::name`, and by how much it measures.
pub(super) type Sizes = BTreeMap<String, usize>;

/// Reads lines of `MEASURE PLACE SIZE`; `#` opens a comment.
pub(super) fn parse(text: &str) -> Result<Sizes> {
    let mut sizes = Sizes::new();
    for line in
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let Some((what, Ok(size))) = line.rsplit_once(' ').map(|(what, size)| (what, size.parse()))
        else {
            bail!("{PATH}: not `MEASURE PLACE SIZE`: {line}");
        };
        sizes.insert(what.to_owned(), size);
    }
    Ok(sizes)
}

/// Returns what is over a limit without being listed, and what is listed with too much room.
pub(super) fn compare(measured: &Sizes, listed: &Sizes) -> Vec<String> {
    let mut findings = Vec::new();
    for (what, &size) in measured {
        match listed.get(what) {
            None => findings.push(format!("{what}: {size} is over the limit")),
            Some(&allowed) if size > allowed => {
                findings.push(format!("{what}: grew from {allowed} to {size}"));
            }
            Some(&allowed) if size < allowed => {
                findings.push(format!("{PATH}: lower `{what} {allowed}` to {size}"));
            }
            Some(_) => {}
        }
    }
    for what in listed.keys().filter(|what| !measured.contains_key(*what)) {
        findings.push(format!("{PATH}: `{what}` is no longer needed"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_may_only_shrink() {
        let listed = parse("# reason\nfile a.rs 700\nfile b.rs 650\n\nfile c.rs 800\n").unwrap();
        let measured = parse("file a.rs 701\nfile b.rs 640\nfunction d.rs::e 71").unwrap();
        let findings = compare(&measured, &listed);
        assert_eq!(
            findings,
            [
                "file a.rs: grew from 700 to 701",
                "xtask/tidy-exceptions.txt: lower `file b.rs 650` to 640",
                "function d.rs::e: 71 is over the limit",
                "xtask/tidy-exceptions.txt: `file c.rs` is no longer needed",
            ]
        );
        assert!(compare(&measured, &measured).is_empty());
        assert!(parse("file a.rs many").is_err());
    }
}
