//! Which parameters of the runs differ between the sides.

use std::collections::BTreeSet;

/// The parameters of one run: names with values, each name at most once.
type Parameters = [(String, String)];

/// A parameter that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is called.
    pub name: String,
    /// The values that occurred before, each once; none when it was never given.
    pub before: Vec<String>,
    /// The values that occurred after, each once; none when it was never given.
    pub after: Vec<String>,
}

/// Returns the parameters that differ, in the order in which they first occur.
///
/// One that varies in the same way on both sides does not differ.
pub fn differing<P: AsRef<Parameters>>(before: &[P], after: &[P]) -> Vec<Difference> {
    let mut seen = BTreeSet::new();
    let all = before.iter().chain(after).flat_map(|run| run.as_ref());
    let names = all.map(|(name, _)| name.as_str()).filter(|name| seen.insert(*name));
    let differing = names.filter_map(|name| {
        let (side_before, side_after) = (values(before, name), values(after, name));
        let known = |side: Vec<Option<&str>>| -> Vec<String> {
            side.into_iter().flatten().map(str::to_owned).collect()
        };
        let sets = [&side_before, &side_after].map(|side| side.iter().collect::<BTreeSet<_>>());
        (sets[0] != sets[1]).then(|| Difference {
            name: name.to_owned(),
            before: known(side_before),
            after: known(side_after),
        })
    });
    differing.collect()
}

/// Returns the values of one parameter in the order they first occur, `None` where a run lacks it.
fn values<'a, P: AsRef<Parameters>>(runs: &'a [P], name: &str) -> Vec<Option<&'a str>> {
    let mut values = Vec::new();
    for run in runs {
        let found = run.as_ref().iter().find(|(of, _)| of == name);
        let value = found.map(|(_, value)| value.as_str());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}
