//! The values of a command line as written, before their sum is known.

use std::fmt::Display;

use crate::command_line::Note;

/// What the flags say.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(super) ranks: u32,
    pub(super) directories: Vec<String>,
    pub(super) files_only: bool,
    pub(super) directories_only: bool,
    pub(super) create: bool,
    pub(super) stat: bool,
    pub(super) read: bool,
    pub(super) remove: bool,
    pub(super) rename: bool,
    pub(super) entries: u64,
    pub(super) entries_per_directory: u64,
    pub(super) depth: u32,
    pub(super) branching: u32,
    pub(super) leaves_only: bool,
    pub(super) tree_per_rank: bool,
    pub(super) shared_names: bool,
    pub(super) write_bytes: u32,
    pub(super) read_bytes: u32,
    pub(super) fsync: bool,
    pub(super) verify_read: bool,
    pub(super) shuffled: bool,
    pub(super) seed: Option<u64>,
    pub(super) shift: u32,
    pub(super) iterations: u32,
    pub(super) pause_s: u64,
    pub(super) ranks_first: Option<u32>,
    pub(super) ranks_last: u32,
    pub(super) ranks_step: Option<u32>,
    pub(super) times_only: bool,
    pub(super) times_too: bool,
    pub(super) verbosity: u64,
    pub(super) rank_statistics: bool,
    pub(super) end_on_failure: bool,
    pub(super) notes: Vec<Note>,
}

impl Written {
    /// Notes what differs behind a flag.
    pub(super) fn note(&mut self, flag: impl Display, what: impl Into<String>) {
        self.notes.push(Note::new(format!("`{flag}`"), what));
    }
}

/// Reads a number as mdtest does, `k`, `m`, `g`, `t` and `p` being powers of 1024; what else stands
/// behind the digits is refused, where mdtest passes over it.
pub(super) fn number(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err("it is a number, with `k`, `m`, `g`, `t` or `p` or without".to_owned()),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("it is a whole number that is not negative".to_owned());
    }
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << (10 * power)))
        .ok_or_else(|| "the number is too large".to_owned())
}

/// Reads a number of 32 bits.
pub(super) fn number_32(text: &str) -> Result<u32, String> {
    let number = number(text)?;
    u32::try_from(number).map_err(|_| format!("{} is the most", u32::MAX))
}

/// Reads a number of 32 bits that is not 0.
pub(super) fn number_from_1(text: &str) -> Result<u32, String> {
    match number_32(text)? {
        0 => Err("it is 1 at least".to_owned()),
        number => Ok(number),
    }
}
