//! What is to be known of a trace: what it left open and how that was filled in, and what of it is
//! not replayed.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::Bytes;

/// So many kinds of operation that are not replayed are named.
const UNSUPPORTED_NAMED_MAX: usize = 6;
/// So many different names of such kinds are kept; others are counted together.
const UNSUPPORTED_KEPT_MAX: usize = 64;

/// What is to be known of a trace. Counts are of its entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceFacts {
    /// Where its form comes from: `s3-access-log` and such.
    pub format: String,
    /// Entries that could not be read.
    pub unreadable_count: u64,
    /// The first of those: its line and what is wrong with it.
    pub unreadable_first: Option<(u64, String)>,
    /// Entries of operations that nothing here does, by their names.
    pub unsupported: BTreeMap<String, u64>,
    /// Operations that failed when they were recorded.
    pub failed_count: u64,
    /// Operations on objects that the trace itself had removed before.
    pub gone_count: u64,
    /// Reads of a part that begins behind the end of the object.
    pub beyond_count: u64,
    /// Reads of a part that ends behind the end of the object.
    pub clipped_count: u64,
    /// Entries that came after a later one.
    pub out_of_order_count: u64,
    /// What its instants are counted in.
    pub tick: Duration,
    /// Operations whose instants are known to the second only.
    pub spread_count: u64,
    /// Objects, or contents of them, whose sizes the trace does not tell.
    pub size_unknown_count: u64,
    /// The size that those have here.
    pub size_assumed: u64,
    /// Uploads in parts, each of which is one put here.
    pub uploads_count: u64,
    /// Parts of uploads that never came to an end.
    pub parts_left_count: u64,
    /// Puts that are larger than one request may be.
    pub capped_count: u64,
    /// The instant up to which the trace is replayed, where that is not its end, and how many
    /// operations come later.
    pub until: Option<(Duration, u64)>,
    /// What the form of the trace never tells, a sentence each.
    pub of_format: Vec<String>,
}

impl TraceFacts {
    /// Counts an operation that nothing here does.
    pub fn note_unsupported(&mut self, name: &str) {
        let is_new = !self.unsupported.contains_key(name);
        let name = match is_new && self.unsupported.len() >= UNSUPPORTED_KEPT_MAX {
            true => "others",
            false => name,
        };
        *self.unsupported.entry(name.to_owned()).or_default() += 1;
    }

    /// Counts an entry that cannot be read.
    pub fn note_unreadable(&mut self, line: u64, reason: String) {
        self.unreadable_count += 1;
        self.unreadable_first.get_or_insert((line, reason));
    }

    /// Returns what is to be said of the trace, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.of_format.clone();
        let mut say = |count: u64, one: &str, several: &str| match count {
            0 => {}
            1 => notes.push(format!("1 {one}")),
            count => notes.push(format!("{count} {several}")),
        };
        let (line, reason) = self.unreadable_first.clone().unwrap_or_default();
        say(
            self.unreadable_count,
            &format!("line could not be read and was left out, line {line}: {reason}"),
            &format!(
                "lines could not be read and were left out, the first of them {line}: {reason}"
            ),
        );
        let kinds = self.kinds();
        say(
            self.unsupported.values().sum(),
            &format!("operation is of a kind that is not replayed: {kinds}"),
            &format!("operations are of kinds that are not replayed: {kinds}"),
        );
        say(
            self.failed_count,
            "operation had failed when it was recorded and was left out",
            "operations had failed when they were recorded and were left out",
        );
        say(
            self.gone_count,
            "operation on an object that the trace had removed before was left out",
            "operations on objects that the trace had removed before were left out",
        );
        say(
            self.beyond_count,
            "read of a part beyond the end of its object was left out",
            "reads of a part beyond the end of its object were left out",
        );
        say(
            self.clipped_count,
            "read of a part is cut at the end of the object",
            "reads of a part are cut at the end of the object",
        );
        say(
            self.out_of_order_count,
            "entry came after a later one; all are replayed in order of time",
            "entries came after later ones; all are replayed in order of time",
        );
        say(
            self.spread_count,
            "operation has a time in whole seconds",
            "operations have times in whole seconds; those of one second are spread evenly over it",
        );
        let assumed = Bytes(self.size_assumed);
        say(
            self.size_unknown_count,
            &format!("size is missing from the trace; such an object has {assumed} here"),
            &format!("sizes are missing from the trace; such objects have {assumed} here"),
        );
        self.say_of_uploads(&mut say);
        if let Some((until, later)) = self.until {
            let until = until.as_secs_f64();
            say(
                later,
                &format!("operation comes after {until} s and was left out"),
                &format!("operations come after {until} s and were left out"),
            );
        }
        notes
    }

    fn say_of_uploads(&self, say: &mut dyn FnMut(u64, &str, &str)) {
        say(
            self.uploads_count,
            "upload in parts is put whole, when it was completed",
            "uploads in parts are put whole, when they were completed",
        );
        say(
            self.parts_left_count,
            "part belongs to an upload that was not completed; left out",
            "parts belong to uploads that were not completed; left out",
        );
        say(
            self.capped_count,
            "put of more than 5 GiB is cut to 5 GiB",
            "puts of more than 5 GiB are cut to 5 GiB",
        );
    }

    fn kinds(&self) -> String {
        let mut kinds: Vec<(&String, &u64)> = self.unsupported.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let more = kinds.len().saturating_sub(UNSUPPORTED_NAMED_MAX);
        let named = kinds.iter().take(UNSUPPORTED_NAMED_MAX);
        let mut named: Vec<String> = named.map(|(name, count)| format!("{count} {name}")).collect();
        if more > 0 {
            named.push(format!("and {more} kinds more"));
        }
        named.join(", ")
    }
}
