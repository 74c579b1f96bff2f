//! Links of the built site, and those of README.md into the documents. Links to other sites are
//! not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use super::files;

/// Pages that mdBook adds, which repeat what the others say or stand for any place.
const NOT_READ: [&str; 3] = ["print.html", "404.html", "toc.html"];

/// Returns what is wrong with the links of a built site: a page, an image or an `id` that is
/// missing.
pub(super) fn of_site(site: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    let all: BTreeSet<PathBuf> = files(site)?.into_iter().collect();
    for path in all.iter().filter(|path| path.extension().is_some_and(|of| of == "html")) {
        pages.insert(path.clone(), fs::read_to_string(path)?);
    }
    let mut findings = Vec::new();
    for (path, text) in &pages {
        let name = path.strip_prefix(site).unwrap_or(path).display().to_string();
        if NOT_READ.contains(&name.as_str()) {
            continue;
        }
        for link in attributes(text, &["href", "src"]).filter(|link| is_ours(link)) {
            let (file, id) = link.split_once('#').unwrap_or((link, ""));
            let file = file.split('?').next().unwrap_or_default();
            let target = match file {
                "" => path.clone(),
                _ => resolve(path, file),
            };
            if !all.contains(&target) {
                findings.push(format!("{name}: {link}: no such file in the site"));
                continue;
            }
            let has = |text: &String| attributes(text, &["id"]).any(|found| found == id);
            if !id.is_empty() && !pages.get(&target).is_some_and(has) {
                findings.push(format!("{name}: {link}: no such place on that page"));
            }
        }
    }
    findings.dedup();
    Ok(findings)
}

/// Returns what is wrong with the relative links of README.md: a file or a heading is missing.
pub(super) fn of_readme(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join("README.md"))?;
    let mut findings = Vec::new();
    for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        if !is_ours(link) {
            continue;
        }
        let (file, id) = link.split_once('#').unwrap_or((link, ""));
        let target = root.join(file);
        if !target.exists() {
            findings.push(format!("README.md: {link}: no such file"));
        } else if !id.is_empty() && !has_heading(&fs::read_to_string(&target)?, id) {
            findings.push(format!("README.md: {link}: no such heading"));
        }
    }
    Ok(findings)
}

fn has_heading(text: &str, id: &str) -> bool {
    text.lines().filter(|line| line.starts_with('#')).any(|line| heading_id(line) == id)
}

/// Returns the id that GitHub and mdBook give a heading.
fn heading_id(line: &str) -> String {
    let title = line.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter_map(|c| match c {
        _ if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ if c.is_whitespace() => Some('-'),
        _ => None,
    });
    kept.collect()
}

/// Returns true for a link that leads to a place in the repository or in the site.
fn is_ours(link: &str) -> bool {
    let has_scheme = link.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    });
    !has_scheme && !link.is_empty()
}

/// Returns the values of attributes in the tags of a page.
fn attributes<'a>(text: &'a str, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let tags = text.split('<').filter_map(|piece| piece.split_once('>')).map(|(tag, _)| tag);
    tags.flat_map(move |tag| {
        names.iter().filter_map(move |name| {
            let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        })
    })
}

/// Returns the file that a link on a page leads to.
fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(page).to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A site in a directory of its own, removed at the end.
    struct Site(PathBuf);

    impl Site {
        fn new(name: &str, pages: &[(&str, &str)]) -> Self {
            let name = format!("plimsoll-{name}-{}", std::process::id());
            let site = std::env::temp_dir().join(name);
            for (path, text) in pages {
                let path = site.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(site)
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn broken_links_of_a_site_are_found_and_sound_ones_are_not() {
        let index = "<h1 id=\"top\">T</h1><a href=\"deep/page.html#here\">x</a> <a href=\"#top\">\
                     <a href=\"https://else.where/a\"> <a href=\"gone.html\"> <img alt=\"\" \
                     src=\"gone.png\"> <a href=\"deep/page.html#lost\"> a &lt; href=\"text\"";
        let page = "<h2 id=\"here\"><a class=\"x\" href=\"../index.html\">up</a> \
                    <a href=\"#nowhere\">";
        let site = Site::new("links", &[("index.html", index), ("deep/page.html", page)]);
        assert_eq!(
            of_site(&site.0).unwrap(),
            [
                "deep/page.html: #nowhere: no such place on that page",
                "index.html: gone.html: no such file in the site",
                "index.html: gone.png: no such file in the site",
                "index.html: deep/page.html#lost: no such place on that page",
            ]
        );
    }

    #[test]
    fn broken_links_of_the_readme_are_found() {
        let readme = "[a](docs/a.md) [b](docs/b.md) [c](docs/a.md#1-two-words) [d](docs/a.md#no) \
                      [e](https://else.where) ![i](docs/i.png)";
        let pages = [("README.md", readme), ("docs/a.md", "# 1. Two `words`\n")];
        let root = Site::new("readme", &pages);
        assert_eq!(
            of_readme(&root.0).unwrap(),
            [
                "README.md: docs/b.md: no such file",
                "README.md: docs/a.md#no: no such heading",
                "README.md: docs/i.png: no such file",
            ]
        );
    }
}
