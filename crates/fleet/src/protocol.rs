//! What coordinator and agents say to each other: messages that may be lost, come twice or late.
//!
//! A run is a row of steps. The coordinator asks each agent to carry a step out, again and again
//! until it hears that this is done; only then it goes on to the next. So whatever is lost is said
//! again, and whatever comes twice is known by the number of its step.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::offset::Echo;

/// The language of these messages. Another number is another language.
pub const LANGUAGE: &str = "plimsoll.fleet/1";

/// The longest message: what stock servers carry is 1 MiB.
pub const MESSAGE_BYTES_MAX: usize = 1 << 19;

/// The longest text that somebody else's message may have us keep or show.
pub const NAME_BYTES_MAX: usize = 100;

/// The most that an agent may say of how much of the load it takes relative to others.
pub const WEIGHT_MAX: u32 = 1_000_000;

/// Names an agent on its fabric: what stands in the subjects of its messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(String);

/// A text that names no agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an agent's id holds 1 to {NAME_BYTES_MAX} letters, digits, `-` and `_`")]
pub struct AgentIdError;

impl AgentId {
    /// Returns the id of that text.
    pub fn new(text: impl Into<String>) -> Result<Self, AgentIdError> {
        let text = text.into();
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        match (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_good) {
            true => Ok(Self(text)),
            false => Err(AgentIdError),
        }
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentId {
    type Error = AgentIdError;

    fn try_from(text: String) -> Result<Self, AgentIdError> {
        Self::new(text)
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> Self {
        id.0
    }
}

/// What a coordinator says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask<O> {
    /// Who is there?
    Roll {
        /// Who asks.
        coordinator: u64,
        /// Paths of which agents are to tell what lies there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        look: Vec<String>,
        /// Which question it is, so that an answer can be told from that to another.
        #[serde(default)]
        number: u32,
    },
    /// A step of a run.
    Step(Step<O>),
}

/// What a coordinator says to one agent of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step<O> {
    /// Who asks.
    pub coordinator: u64,
    /// Of which run.
    pub run: String,
    /// Which process the agent was when it was taken on.
    pub incarnation: u64,
    /// The step under way, from 1 on.
    pub step: u32,
    /// What it is to do; left out when the agent is known to have it.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub order: Option<O>,
    /// The step is to end early.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ends: bool,
    /// The agent is no longer part of the run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dismissed: bool,
    /// What came of the step is known.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_known: bool,
    /// To be answered at once with the agent's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<u64>,
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tell<A, L> {
    /// Who says it.
    pub agent: AgentId,
    /// Which process of that name.
    pub incarnation: u64,
    /// Grows with each message of that process.
    pub number: u64,
    /// To whom; `None`: to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<u64>,
    /// What.
    pub what: What<A, L>,
}

/// What an agent has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What<A, L> {
    /// It is there.
    Here(About),
    /// How far it is with a run.
    Run(Progress<A, L>),
    /// It leaves.
    Leaving,
}

/// What is known of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// What people call it.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// How much of the load it takes relative to others.
    pub weight: u32,
    /// Whether its connection to the fabric is encrypted.
    #[serde(default)]
    pub is_encrypted: bool,
    /// The run that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<String>,
    /// Runs of which it keeps its part, as nobody has confirmed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// What lies at the paths that it was asked for, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// How its machine stood when it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Box<MachineState>>,
}

/// How a machine stands at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineState {
    /// Which question of the roll it answers.
    pub number: u32,
    /// What its wall clock shows, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// How many cores the agent may use.
    pub cores_count: u64,
    /// For how long its processors were busy, in ticks of its kernel; 0 where that is not known.
    pub busy_ticks: u64,
    /// For how long they were there.
    pub ticks: u64,
}

impl MachineState {
    /// Returns how busy the machine was since an earlier moment, 0 to 100.
    pub fn cpu_percent_since(&self, before: &Self) -> Option<f64> {
        let passed = self.ticks.checked_sub(before.ticks).filter(|passed| *passed > 0)?;
        let busy = self.busy_ticks.checked_sub(before.busy_ticks)?;
        Some(busy.min(passed) as f64 * 100.0 / passed as f64)
    }
}

impl About {
    /// Tells whether it can be shown to people as it is, and is no longer than any.
    pub fn is_printable(&self) -> bool {
        if self.kept.len() > KEPT_MAX || self.places.len() > PLACES_MAX {
            return false;
        }
        let fits = |text: &str| text.len() <= NAME_BYTES_MAX && !text.contains(char::is_control);
        let runs = self.busy.iter().chain(&self.kept);
        let mut texts = [&self.name, &self.version].into_iter().chain(runs);
        !self.name.is_empty() && texts.all(|text| fits(text))
    }
}

/// What an agent finds at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// What is free on the file system.
    pub free_bytes: Option<u64>,
    /// What offsets and lengths are multiples of where the page cache is passed by; `None` where it
    /// cannot be.
    pub direct_align: Option<u64>,
    /// How much a file or device there holds.
    pub size_bytes: Option<u64>,
    /// Whether it is a block device.
    pub is_device: bool,
    /// Why nothing of it is known.
    pub trouble: Option<String>,
}

/// So many places are looked at for one question.
pub const PLACES_MAX: usize = 256;

/// So many runs an agent tells of whose parts it keeps: the latest, as more do not fit into its
/// messages.
pub const KEPT_MAX: usize = 256;

/// How far an agent is with a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress<A, L> {
    /// Which run.
    pub run: String,
    /// How far.
    pub state: State<A>,
    /// The answer to a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Echo>,
    /// What was counted so far.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub live: Option<L>,
}

/// How far an agent is with what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State<A> {
    /// It works on a step.
    Working {
        /// Which one.
        step: u32,
    },
    /// A step is done.
    Done {
        /// Which one.
        step: u32,
        /// What came of it; left out when that is known to be known.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        answer: Option<A>,
    },
    /// It is not part of that run: it never was, or it has begun anew since, or left it.
    Unknown,
    /// It is part of another one.
    Busy {
        /// Which one.
        run: String,
    },
}

impl<A> State<A> {
    /// Tells whether the agent is part of the run that it speaks of.
    pub const fn is_part(&self) -> bool {
        matches!(self, Self::Working { .. } | Self::Done { .. })
    }
}

fn none<T>() -> Option<T> {
    None
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Why a message is not understood.
#[derive(Debug, Error)]
pub enum MessageError {
    /// It is of another version.
    #[error("it speaks {found}, this program {LANGUAGE}: both sides need the same version")]
    Language {
        /// Which.
        found: String,
    },
    /// It is none of these messages.
    #[error("it is not a message of a fleet")]
    Form(#[source] serde_json::Error),
    /// It does not fit.
    #[error("it has {size} B, more than the {MESSAGE_BYTES_MAX} B of the longest message")]
    Long {
        /// How long it is.
        size: usize,
    },
}

/// A message as it is sent.
#[derive(Serialize, Deserialize)]
struct Sent<T> {
    language: String,
    says: T,
}

#[derive(Deserialize)]
struct Spoken {
    language: String,
}

/// Returns a message as bytes.
pub fn encode<T: Serialize>(says: &T) -> Result<Vec<u8>, MessageError> {
    let sent = Sent { language: LANGUAGE.to_owned(), says };
    let bytes = serde_json::to_vec(&sent).map_err(MessageError::Form)?;
    match bytes.len() {
        size if size > MESSAGE_BYTES_MAX => Err(MessageError::Long { size }),
        _ => Ok(bytes),
    }
}

/// Returns the message that the bytes are.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MessageError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(MessageError::Long { size: bytes.len() });
    }
    let Spoken { language } = serde_json::from_slice(bytes).map_err(MessageError::Form)?;
    if language != LANGUAGE {
        let found = language.chars().take(NAME_BYTES_MAX).collect();
        return Err(MessageError::Language { found });
    }
    let sent: Sent<T> = serde_json::from_slice(bytes).map_err(MessageError::Form)?;
    Ok(sent.says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_what_is_not_is_told_why() {
        let step = Step {
            coordinator: u64::MAX,
            run: "get-1".to_owned(),
            incarnation: 7,
            step: 3,
            order: Some("go".to_owned()),
            ends: false,
            dismissed: true,
            is_known: false,
            probe: Some(1),
        };
        let bytes = encode(&Ask::Step(step.clone())).unwrap();
        assert_eq!(decode::<Ask<String>>(&bytes).unwrap(), Ask::Step(step));
        let other = br#"{"language":"plimsoll.fleet/9","says":{"new":1}}"#;
        let error = decode::<Ask<String>>(other).unwrap_err();
        assert!(error.to_string().contains("plimsoll.fleet/9"), "{error}");
        for broken in [&b""[..], b"{}", b"\xff", br#"{"language":"plimsoll.fleet/1","says":{}}"#] {
            assert!(matches!(decode::<Ask<String>>(broken), Err(MessageError::Form(_))));
        }
        let long = vec![b' '; MESSAGE_BYTES_MAX + 1];
        assert!(matches!(decode::<Ask<String>>(&long), Err(MessageError::Long { .. })));
        let order = "x".repeat(MESSAGE_BYTES_MAX);
        let roll = serde_json::json!({ "order": order });
        assert!(matches!(encode(&roll), Err(MessageError::Long { .. })));
    }

    #[test]
    fn ids_are_single_words_of_subjects() {
        assert_eq!(AgentId::new("a-1_B").unwrap().as_str(), "a-1_B");
        for bad in ["", "a.b", "a*", ">", "a b", "ä", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert_eq!(AgentId::new(bad), Err(AgentIdError), "{bad}");
            assert!(serde_json::from_value::<AgentId>(serde_json::json!(bad)).is_err());
        }
    }
}
