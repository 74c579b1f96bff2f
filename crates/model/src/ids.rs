//! Names of things in a run: run, stage, job, worker, endpoint, object, seed.

use std::fmt;

use crate::WallTime;

/// The number that fixes all choices of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

/// A loop that issues operations one at a time; 0-based over the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

/// A stage of the run by its position in the manifest, 0-based.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(pub u8);

/// A job within a stage, 0-based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u8);

/// One address of the target by its position in the manifest, 0-based.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u16);

impl EndpointId {
    /// How many addresses a run may have: each has figures of its own for each kind of operation.
    pub const COUNT_MAX: usize = 4_096;
    /// What the record calls all hosts of a target together that came after its beginning.
    pub const LATER_HOSTS: &str = "hosts that came later";
}

named! {
    /// What a stage is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum StageKind {
        /// Makes what the measured stage needs.
        Prepare = "prepare",
        /// The stage whose figures are the result.
        Measure = "measure",
        /// Removes what the run wrote.
        Cleanup = "cleanup",
    }
}

/// An object as the workload numbers it: the worker that owns it and its number there.
///
/// The key, the size and the content are functions of this id and the run's seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(u64);

impl ObjectId {
    const NUMBER_BITS: u32 = 40;
    /// How many objects one worker can own.
    pub const NUMBER_MAX: u64 = (1 << Self::NUMBER_BITS) - 1;
    /// How many workers can own objects; the highest is kept free for "no object".
    pub const OWNER_MAX: u32 = (1 << 24) - 2;

    /// Returns the id of object `number` of `owner`.
    #[inline]
    pub const fn new(owner: WorkerId, number: u64) -> Self {
        assert!(owner.0 <= Self::OWNER_MAX && number <= Self::NUMBER_MAX);
        Self((owner.0 as u64) << Self::NUMBER_BITS | number)
    }

    /// Returns the worker that owns the object.
    pub const fn owner(self) -> WorkerId {
        WorkerId((self.0 >> Self::NUMBER_BITS) as u32)
    }

    /// Returns the object's number within its owner, 0-based.
    pub const fn number(self) -> u64 {
        self.0 & Self::NUMBER_MAX
    }

    /// Returns the id as one integer.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the id that `as_u64` gave, or `None` for an integer that is no id.
    pub const fn from_u64(raw: u64) -> Option<Self> {
        if raw >> Self::NUMBER_BITS > Self::OWNER_MAX as u64 { None } else { Some(Self(raw)) }
    }
}

/// The name of one run: `<what>-<UTC time>-<4 characters>`, safe as a file name and inside a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunId(String);

/// A text that is no run id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIdError;

impl fmt::Display for RunIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a run id holds 1 to 100 lower-case letters, digits and hyphens")
    }
}

impl std::error::Error for RunIdError {}

impl RunId {
    const SUFFIX_ALPHABET: &'static [u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

    /// What a run is of takes no more of its id than this.
    const WHAT_BYTES_MAX: usize = 60;

    /// Returns the id of a run of `what` begun at `at`; 20 bits of `entropy` tell runs of one
    /// second apart. Of `what`, letters and digits are kept, in lower case.
    pub fn new(what: &str, at: WallTime, entropy: u64) -> Self {
        let fitting =
            |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let what: String = what.chars().take(Self::WHAT_BYTES_MAX).map(fitting).collect();
        let (year, month, day, hour, minute, second) = at.civil();
        let suffix: String = (0..4)
            .map(|i| Self::SUFFIX_ALPHABET[(entropy >> (5 * i) & 31) as usize] as char)
            .collect();
        Self(format!(
            "{what}-{year:04}{month:02}{day:02}t{hour:02}{minute:02}{second:02}z-{suffix}"
        ))
    }

    /// Returns `text` as a run id if it can be one.
    pub fn parse(text: &str) -> Result<Self, RunIdError> {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if text.is_empty() || text.len() > 100 || !text.bytes().all(fits) {
            return Err(RunIdError);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_tells_what_and_when() {
        let id = RunId::new("s3-get", WallTime::from_unix_ns(1_795_251_600_000_000_000), 0);
        assert_eq!(id.as_str(), "s3-get-20261121t090000z-aaaa");
        assert_eq!(RunId::parse(id.as_str()), Ok(id));
        let id = RunId::new("FIOmaster_v3 ü", WallTime::from_unix_ns(0), 0);
        assert_eq!(id.as_str(), "fiomaster-v3---19700101t000000z-aaaa");
        assert_eq!(RunId::parse(id.as_str()), Ok(id));
        let id = RunId::new(&"x".repeat(300), WallTime::from_unix_ns(0), 0);
        assert_eq!(RunId::parse(id.as_str()), Ok(id));
        assert_eq!(RunId::parse("../x"), Err(RunIdError));
        assert_eq!(RunId::parse(""), Err(RunIdError));
    }

    #[test]
    fn an_object_id_keeps_owner_and_number() {
        for (owner, number) in [(0, 0), (7, 12), (ObjectId::OWNER_MAX, ObjectId::NUMBER_MAX)] {
            let id = ObjectId::new(WorkerId(owner), number);
            assert_eq!((id.owner(), id.number()), (WorkerId(owner), number));
            assert_eq!(ObjectId::from_u64(id.as_u64()), Some(id));
        }
        assert_eq!(ObjectId::from_u64(u64::MAX), None);
    }
}
