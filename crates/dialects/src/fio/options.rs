//! Every option of fio and what becomes of it here.

mod engines;
mod noted;
mod refused;
mod taken;

use super::resolve::Draft;
use super::values::Value;
use crate::command_line::{Deal, Flag, Kind};
use crate::spelling;

/// Sets in the draft what the value says, or tells why it cannot.
type Take = fn(&mut Draft, &mut Value<'_>) -> Result<(), String>;

/// What an option does to a job.
pub(crate) struct OfJob {
    pub(super) take: Take,
    /// The values with which nothing differs, of an option that is not followed.
    pub(super) same: &'static [&'static str],
}

/// An option of fio.
pub(crate) type Known = Flag<OfJob>;

const fn take(name: &'static str, aliases: &'static [&'static str], take: Take) -> Known {
    Flag::new(name, Kind::Text, Deal::Take, "", OfJob { take, same: &[] }).or(aliases)
}

const fn note(name: &'static str, same: &'static [&'static str], what: &'static str) -> Known {
    Flag::new(name, Kind::Text, Deal::Note, what, OfJob { take: |_, _| Ok(()), same })
}

const fn refuse(name: &'static str, same: &'static [&'static str], why: &'static str) -> Known {
    Flag::new(name, Kind::Text, Deal::Refuse, why, OfJob { take: |_, _| Ok(()), same })
}

impl Known {
    /// Has the option be on by being there, and so take no value from the next argument.
    const fn switch(mut self) -> Self {
        self.kind = Kind::Switch;
        self
    }
}

/// Returns all options: those that are followed, then those that change no load, then the others.
pub(crate) fn all() -> impl Iterator<Item = &'static Known> {
    [taken::TAKEN, noted::NOTED, refused::REFUSED].into_iter().flatten()
}

/// Returns the option of this name.
pub(super) fn find(name: &str) -> Option<&'static Known> {
    all().find(|known| known.is_called(name))
}

/// Returns which option is meant; `more` are names that are known besides those of jobs.
pub(super) fn did_you_mean(name: &str, more: &[&'static str]) -> String {
    let names = all().flat_map(Flag::names).chain(more.iter().copied());
    spelling::did_you_mean(name, names.map(|name| (name, name.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_half_like_it_at_least() {
        for (name, nearest) in
            [("iodept", "iodepth"), ("blocksiz", "blocksize"), ("outputformat", "output-format")]
        {
            let hint = did_you_mean(name, &["output-format"]);
            assert_eq!(hint, format!("; did you mean `{nearest}`?"));
        }
        assert_eq!(did_you_mean("qqqqqqqqqqqq", &[]), "");
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
