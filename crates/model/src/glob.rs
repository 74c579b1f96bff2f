//! Names by pattern.

use std::fmt;
use std::str::FromStr;

/// Names: `*` stands for any letters, `?` for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// Tells whether a name is one of them.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name): (Vec<char>, Vec<char>) =
            (self.0.chars().collect(), name.chars().collect());
        let (mut at, mut of) = (0, 0);
        // Where the last `*` stands, and up to where it has been taken to reach.
        let mut star: Option<(usize, usize)> = None;
        while of < name.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, of));
                    at += 1;
                }
                Some(letter) if *letter == '?' || *letter == name[of] => {
                    (at, of) = (at + 1, of + 1);
                }
                _ => {
                    let Some((before, reached)) = star else { return false };
                    star = Some((before, reached + 1));
                    (at, of) = (before + 1, reached + 1);
                }
            }
        }
        pattern[at..].iter().all(|letter| *letter == '*')
    }
}

impl FromStr for Glob {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "" => Err("must be a name; `*` stands for any letters, `?` for one"),
            text => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_letters_and_marks_for_one() {
        let matches = |glob: &str, name: &str| glob.parse::<Glob>().unwrap().matches(name);
        for (glob, name) in [
            ("c1", "c1"),
            ("*", "c1"),
            ("c*", "c"),
            ("c*", "c123"),
            ("*1", "c11"),
            ("c?", "c1"),
            ("a*b*c", "axbbxc"),
            ("*-data-??", "my-data-data-01"),
        ] {
            assert!(matches(glob, name), "{glob} {name}");
        }
        for (glob, name) in [
            ("c1", "c11"),
            ("c?", "c"),
            ("c?", "c12"),
            ("*1", "c12"),
            ("a*b", "acb2"),
            ("C1", "c1"),
        ] {
            assert!(!matches(glob, name), "{glob} {name}");
        }
        assert!("".parse::<Glob>().is_err() && " ".parse::<Glob>().is_err());
        // One that would take for ever by trying every way.
        assert!(!matches(&"a*".repeat(40), &"a".repeat(400).replace("aa", "ab")[1..]));
    }
}
