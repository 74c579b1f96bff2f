//! Brings what directories hold into the order of keys, directory by directory.
//!
//! A filer lists the names of one directory in their order. Keys have another one: `a.b` stands
//! before `a/x`, although the name `a` stands before `a.b`. So a directory waits until all names
//! have passed that stand before its own with a `/` behind it.

use std::collections::{BTreeSet, VecDeque};

/// How many bytes names and directories may have that are held at one time. Of a directory that is
/// a page, and the few whose turn has not come.
const HELD_BYTES_MAX: usize = 64 << 20;

/// A name of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) is_directory: bool,
    pub(super) size: u64,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A file's key, and its size.
    File(String, u64),
    /// A page of the directory that the walk is in has to be read.
    Page,
    /// All was handed out.
    End,
}

/// A directory that the walk is in.
struct Level {
    /// What its keys begin with: empty, or ending in `/`.
    base: String,
    /// What names begin with that are wanted.
    wanted: String,
    /// The last name that was listed.
    last: String,
    is_whole: bool,
    page: VecDeque<Name>,
    /// Directories, each with a `/` behind its name.
    waiting: BTreeSet<String>,
}

impl Level {
    fn new(base: String, wanted: String) -> Self {
        Self {
            base,
            wanted,
            last: String::new(),
            is_whole: false,
            page: VecDeque::new(),
            waiting: BTreeSet::new(),
        }
    }
}

/// A walk through everything below a prefix.
pub(super) struct Walk {
    /// The directories that the walk is in, the deepest last.
    levels: Vec<Level>,
    goes_down: bool,
    /// How many bytes all levels hold.
    held_bytes: usize,
}

/// Returns how many bytes a name takes, about.
fn bytes_of(name: &str) -> usize {
    name.len() + size_of::<Name>()
}

impl Walk {
    /// Begins a walk; one that does not go down passes directories over.
    pub(super) fn below(prefix: &str, goes_down: bool) -> Self {
        let (base, wanted) = prefix.split_at(prefix.rfind('/').map_or(0, |slash| slash + 1));
        let levels = vec![Level::new(base.to_owned(), wanted.to_owned())];
        Self { levels, goes_down, held_bytes: 0 }
    }

    /// Returns the directory of the page that has to be read, what its names begin with, and the
    /// name that it goes on behind.
    pub(super) fn place(&self) -> (&str, &str, &str) {
        let level = self.levels.last().expect("a page is read while there is a directory");
        (&level.base, &level.wanted, &level.last)
    }

    /// Takes a page. An error says why the walk does not go on.
    pub(super) fn take(
        &mut self,
        names: impl Iterator<Item = Name>,
        last: &str,
        goes_on: bool,
    ) -> Result<(), String> {
        let level = self.levels.last_mut().expect("a page was asked for");
        level.is_whole = !goes_on;
        if goes_on && (last.is_empty() || *last == *level.last) {
            return Err(format!("the list of `{}` repeats itself", level.base));
        }
        last.clone_into(&mut level.last);
        for name in names.filter(|name| name.name.starts_with(&level.wanted)) {
            self.held_bytes += bytes_of(&name.name);
            level.page.push_back(name);
        }
        match self.held_bytes > HELD_BYTES_MAX {
            true => Err(format!("the names in and above `{}` are too many to be held", level.base)),
            false => Ok(()),
        }
    }

    pub(super) fn next(&mut self) -> Next {
        while let Some(level) = self.levels.last_mut() {
            let first = level.page.front();
            let is_due = |waiting: &String| first.is_none_or(|first| *waiting < first.name);
            if first.is_none() && !level.is_whole {
                return Next::Page;
            }
            if level.waiting.first().is_some_and(is_due) {
                let down = level.waiting.pop_first().expect("it was looked at");
                let base = format!("{}{down}", level.base);
                // In its list it had no `/`.
                self.held_bytes -= bytes_of(&down) - 1;
                self.held_bytes += bytes_of(&base);
                self.levels.push(Level::new(base, String::new()));
                continue;
            }
            let Some(name) = level.page.pop_front() else {
                let left = self.levels.pop().expect("it is looked at");
                if !self.levels.is_empty() {
                    self.held_bytes -= bytes_of(&left.base);
                }
                continue;
            };
            if name.is_directory && self.goes_down {
                level.waiting.insert(name.name + "/");
                continue;
            }
            self.held_bytes -= bytes_of(&name.name);
            if !name.is_directory {
                return Next::File(level.base.clone() + &name.name, name.size);
            }
        }
        Next::End
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks through keys as a filer would list them, in pages of that size.
    fn walked(keys: &[&str], prefix: &str, page_size: usize, goes_down: bool) -> Vec<String> {
        let mut walk = Walk::below(prefix, goes_down);
        let mut found = Vec::new();
        loop {
            match walk.next() {
                Next::End => return found,
                Next::File(key, size) => {
                    assert_eq!(size, key.len() as u64);
                    found.push(key);
                }
                Next::Page => {
                    let (base, _, last) = walk.place();
                    let below = keys.iter().filter_map(|key| Some((key, key.strip_prefix(base)?)));
                    let names: BTreeSet<(String, bool, u64)> = below
                        .map(|(key, rest)| match rest.split_once('/') {
                            Some((name, _)) => (name.to_owned(), true, 0),
                            None => (rest.to_owned(), false, key.len() as u64),
                        })
                        .filter(|(name, ..)| name.as_str() > last)
                        .collect();
                    let page: Vec<_> = names.iter().take(page_size).cloned().collect();
                    let end = page.last().map(|(name, ..)| name.clone()).unwrap_or_default();
                    let page = page.into_iter().map(|(name, is_directory, size)| Name {
                        name,
                        is_directory,
                        size,
                    });
                    walk.take(page, &end, names.len() > page_size).unwrap();
                }
            }
        }
    }

    const KEYS: [&str; 11] =
        ["a!", "a#/b", "a-", "a.b", "a.b2/z", "a/x", "a/x.y/z", "a/y", "a0", "b/c/d/e", "päivä/🚢"];

    #[test]
    fn keys_come_in_their_order_whatever_the_pages() {
        for page_size in [1, 2, 3, 100] {
            for prefix in ["", "a", "a/", "a.", "a/x", "b/c/", "b/c/d", "p", "none", "none/x"] {
                let mut expected: Vec<&str> =
                    KEYS.into_iter().filter(|key| key.starts_with(prefix)).collect();
                expected.sort_unstable();
                assert_eq!(walked(&KEYS, prefix, page_size, true), expected, "`{prefix}`");
            }
        }
        assert_eq!(walked(&KEYS, "", 2, false), ["a!", "a-", "a.b", "a0"]);
        assert_eq!(walked(&KEYS, "a/", 2, false), ["a/x", "a/y"]);
    }

    #[test]
    fn a_list_that_goes_in_a_circle_ends() {
        let mut walk = Walk::below("d/", true);
        assert_eq!(walk.next(), Next::Page);
        let name = || Name { name: "x".to_owned(), is_directory: false, size: 1 };
        assert_eq!(walk.take([name()].into_iter(), "x", true), Ok(()));
        assert_eq!(walk.next(), Next::File("d/x".to_owned(), 1));
        assert_eq!(walk.next(), Next::Page);
        let why = walk.take([name()].into_iter(), "x", true).unwrap_err();
        assert_eq!(why, "the list of `d/` repeats itself");
    }

    #[test]
    fn a_list_that_leads_ever_deeper_ends() {
        let long = "x".repeat(255);
        let mut walk = Walk::below("", true);
        let mut taken = Ok(());
        let mut depth = 0;
        while taken.is_ok() {
            assert_eq!(walk.next(), Next::Page);
            depth += 1;
            let down = Name { name: long.clone(), is_directory: true, size: 0 };
            // Those beside it are to be looked into later.
            let beside = |number| Name { name: format!("{long}{number}"), ..down.clone() };
            let others = (0..1_000).map(beside);
            taken = walk.take(std::iter::once(down.clone()).chain(others), "z", false);
        }
        assert!(taken.unwrap_err().ends_with("too many to be held"));
        assert!(depth > 100, "{depth}");
    }
}
