//! Known ways in which a storage benchmark misleads, each judged by what the record says of the
//! run. Sources stand in `docs/crimes.md`.
//!
//! What stands in a report already is not judged again: failures, shed load, too few samples, short
//! spans, schedules that were not kept.

use std::time::Duration;

/// What a record says of a run, as far as it bears on whether its figures mislead.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrimeFacts {
    /// Whether the store was a part of this program.
    pub is_embedded: bool,
    /// Whether all addresses of the store are this machine's own.
    pub is_on_this_host: bool,
    /// Whether what was measured of a store was asked for in a closed or capped loop.
    pub is_closed_loop: bool,
    /// How long the longest result was measured, unless its work was all done by then.
    pub measured: Option<Duration>,
    /// Whether what was read had been written by the run itself, just before.
    pub reads_are_fresh: bool,
    /// How many bytes were there to be read.
    pub data_bytes: Option<u64>,
    /// The memory of the machine that holds the data, where that is this one.
    pub memory_bytes: Option<u64>,
    /// Whether the content compresses or repeats.
    pub content_reduces: bool,
    /// Whether files were read through the page cache of the client, and what it held was not
    /// dropped.
    pub reads_are_cached: bool,
    /// Whether files were written, and nothing put that on the medium.
    pub writes_are_cached: bool,
    /// Whether no content of what was read was looked at.
    pub is_unverified: bool,
    /// How many clients on several machines recorded, whose clocks nobody compared.
    pub clocks_uncompared_count: usize,
    /// By how much the clock of an agent may be wrong at most.
    pub clock_uncertainty_max: Option<Duration>,
    /// How many objects were read by how many workers.
    pub objects_and_workers: Option<(u64, u64)>,
    /// How long the beginning differed from the rest beyond chance, though it is in the figures.
    pub warm_up: Option<Duration>,
}

/// A way in which the figures of a run may mislead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crime {
    /// The store was a part of this program.
    EmbeddedStore,
    /// Client and store shared a machine.
    SameHost,
    /// The latency is that of workers who wait.
    ClosedLoop,
    /// What is slow to show had no time to.
    Short(Duration),
    /// What was read had just been written.
    FreshReads,
    /// The data fit into memory.
    FitsInMemory {
        /// How many bytes they are.
        data: u64,
        /// The memory.
        memory: u64,
    },
    /// The content compresses or repeats.
    Reducible,
    /// Reads came from the client's own page cache.
    CachedReads,
    /// Writes went to the client's own page cache.
    CachedWrites,
    /// Nothing that was read was looked at.
    Unverified,
    /// So many clients' clocks were not compared.
    UncomparedClocks(usize),
    /// A clock may be wrong by so much.
    UncertainClock(Duration),
    /// There were so few objects that workers read the same ones at once.
    FewObjects(u64),
    /// The beginning differed for so long.
    WarmUpIncluded(Duration),
}

/// A shorter measurement says little: caches, compaction and garbage collection take minutes.
const MEASURED_MIN: Duration = Duration::from_secs(30);
/// Data of this many times the memory cannot come from there for the most part.
const TIMES_MEMORY: u64 = 2;
/// By how much a clock may be wrong.
const CLOCK_OFF_MAX: Duration = Duration::from_millis(5);

/// Returns what may mislead, the gravest first.
pub fn crimes(facts: &CrimeFacts) -> Vec<Crime> {
    let mut found = Vec::new();
    match (facts.is_embedded, facts.is_on_this_host) {
        (true, _) => found.push(Crime::EmbeddedStore),
        (false, true) => found.push(Crime::SameHost),
        (false, false) => {}
    }
    found.extend(facts.reads_are_cached.then_some(Crime::CachedReads));
    found.extend(facts.writes_are_cached.then_some(Crime::CachedWrites));
    let is_real_store = !facts.is_embedded;
    if let (Some(data), Some(memory)) = (facts.data_bytes, facts.memory_bytes)
        && is_real_store
        && data < memory.saturating_mul(TIMES_MEMORY)
    {
        found.push(Crime::FitsInMemory { data, memory });
    } else if facts.reads_are_fresh && is_real_store {
        found.push(Crime::FreshReads);
    }
    found.extend(facts.is_closed_loop.then_some(Crime::ClosedLoop));
    found.extend(facts.is_unverified.then_some(Crime::Unverified));
    found.extend(facts.content_reduces.then_some(Crime::Reducible));
    let few = facts.objects_and_workers.filter(|(objects, workers)| objects < workers);
    found.extend(few.map(|(objects, _)| Crime::FewObjects(objects)));
    if facts.clocks_uncompared_count > 1 {
        found.push(Crime::UncomparedClocks(facts.clocks_uncompared_count));
    }
    let off = facts.clock_uncertainty_max.filter(|off| *off > CLOCK_OFF_MAX);
    found.extend(off.map(Crime::UncertainClock));
    found.extend(facts.warm_up.map(Crime::WarmUpIncluded));
    let short = facts.measured.filter(|measured| *measured < MEASURED_MIN);
    found.extend(short.map(Crime::Short));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// A run of which nothing is to be said.
    fn clean() -> CrimeFacts {
        CrimeFacts {
            measured: Some(Duration::from_secs(300)),
            data_bytes: Some(500 * GIB),
            memory_bytes: Some(64 * GIB),
            objects_and_workers: Some((100_000, 64)),
            clock_uncertainty_max: Some(Duration::from_micros(200)),
            ..CrimeFacts::default()
        }
    }

    #[test]
    fn each_crime_alone_is_found_alone() {
        assert_eq!(crimes(&clean()), []);
        let second = Duration::from_secs(1);
        type Change<'a> = &'a dyn Fn(&mut CrimeFacts);
        let cases: [(Change<'_>, Crime); 20] = [
            (&|of| of.is_embedded = true, Crime::EmbeddedStore),
            (&|of| (of.is_embedded, of.is_on_this_host) = (true, true), Crime::EmbeddedStore),
            (&|of| of.is_on_this_host = true, Crime::SameHost),
            (&|of| of.is_closed_loop = true, Crime::ClosedLoop),
            (&|of| of.measured = Some(second), Crime::Short(second)),
            (&|of| of.measured = Some(29 * second), Crime::Short(29 * second)),
            (&|of| of.reads_are_fresh = true, Crime::FreshReads),
            (&|of| (of.reads_are_fresh, of.memory_bytes) = (true, None), Crime::FreshReads),
            (&|of| of.data_bytes = Some(GIB), Crime::FitsInMemory { data: GIB, memory: 64 * GIB }),
            (
                &|of| of.data_bytes = Some(127 * GIB),
                Crime::FitsInMemory { data: 127 * GIB, memory: 64 * GIB },
            ),
            (
                &|of| (of.data_bytes, of.reads_are_fresh) = (Some(GIB), true),
                Crime::FitsInMemory { data: GIB, memory: 64 * GIB },
            ),
            (&|of| of.content_reduces = true, Crime::Reducible),
            (&|of| of.reads_are_cached = true, Crime::CachedReads),
            (&|of| of.writes_are_cached = true, Crime::CachedWrites),
            (&|of| of.is_unverified = true, Crime::Unverified),
            (&|of| of.clocks_uncompared_count = 2, Crime::UncomparedClocks(2)),
            (
                &|of| of.clock_uncertainty_max = Some(12 * second / 1_000),
                Crime::UncertainClock(12 * second / 1_000),
            ),
            (&|of| of.objects_and_workers = Some((5, 64)), Crime::FewObjects(5)),
            (&|of| of.warm_up = Some(60 * second), Crime::WarmUpIncluded(60 * second)),
            (&|of| of.warm_up = Some(7 * second), Crime::WarmUpIncluded(7 * second)),
        ];
        for (commit, crime) in cases {
            let mut facts = clean();
            commit(&mut facts);
            assert_eq!(crimes(&facts), [crime]);
        }
    }

    #[test]
    fn what_is_not_known_is_no_crime() {
        assert_eq!(crimes(&CrimeFacts::default()), []);
    }
}
