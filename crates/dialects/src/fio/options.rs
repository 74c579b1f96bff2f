//! Every option of fio and what becomes of it here.

mod engines;
mod noted;
mod refused;
mod taken;

use super::resolve::Draft;
use super::values::Value;
use crate::spelling;

/// Sets in the draft what the value says, or tells why it cannot.
type Take = fn(&mut Draft, &mut Value<'_>) -> Result<(), String>;

/// An option of fio.
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) deal: Deal,
}

/// What becomes of an option.
pub(super) enum Deal {
    /// It is followed.
    Take(Take),
    /// It changes no load, and what differs is said; `same` are the values with which nothing does.
    Note { what: &'static str, same: &'static [&'static str] },
    /// It changes the load and is not followed; `same` are the values that change nothing.
    Refuse { why: &'static str, same: &'static [&'static str] },
}

/// The options that are on by being there, and so take no value from the next argument.
const FLAGS: [&str; 16] = [
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "fixedbufs",
    "group_reporting",
    "hipri",
    "new_group",
    "norandommap",
    "refill_buffers",
    "registerfiles",
    "sqthread_poll",
    "stonewall",
    "thread",
    "time_based",
    "verify_only",
    "zero_buffers",
];

const fn take(name: &'static str, aliases: &'static [&'static str], take: Take) -> Known {
    Known { name, aliases, deal: Deal::Take(take) }
}

const fn note(name: &'static str, same: &'static [&'static str], what: &'static str) -> Known {
    Known { name, aliases: &[], deal: Deal::Note { what, same } }
}

const fn refuse(name: &'static str, same: &'static [&'static str], why: &'static str) -> Known {
    Known { name, aliases: &[], deal: Deal::Refuse { why, same } }
}

impl Known {
    const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Returns whether the option is on by being there.
    pub(super) fn is_flag(&self) -> bool {
        FLAGS.contains(&self.name)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// Returns all options: those that are followed, then those that change no load, then the others.
pub(super) fn all() -> impl Iterator<Item = &'static Known> {
    [taken::TAKEN, noted::NOTED, refused::REFUSED].into_iter().flatten()
}

/// Returns the option of this name.
pub(super) fn find(name: &str) -> Option<&'static Known> {
    all().find(|known| known.names().any(|known| known == name))
}

/// Returns the name that is spelled most like `name`, if it is at least half like it.
pub(super) fn nearest(name: &str, more: &[&'static str]) -> Option<&'static str> {
    let names = all().flat_map(Known::names).chain(more.iter().copied());
    spelling::nearest(name, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_half_like_it_at_least() {
        assert_eq!(nearest("iodept", &[]), Some("iodepth"));
        assert_eq!(nearest("blocksiz", &[]), Some("blocksize"));
        assert_eq!(nearest("qqqqqqqqqqqq", &[]), None);
        assert_eq!(nearest("outputformat", &["output-format"]), Some("output-format"));
    }

    #[test]
    fn each_name_stands_once() {
        let mut names: Vec<&str> = all().flat_map(Known::names).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
        assert!(FLAGS.iter().all(|flag| find(flag).is_some_and(|known| known.name == *flag)));
    }

    #[test]
    fn every_option_of_fio_is_known() {
        let list = include_str!("../../../../testdata/fio/option-names.txt");
        assert!(list.lines().count() > 240);
        let unknown: Vec<&str> =
            list.split_whitespace().filter(|name| find(name).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
