//! What only a SeaweedFS does, checked: its masters and its volume servers. Times are in ns since
//! the script began.

use super::Distribution;

/// What only a SeaweedFS does.
#[derive(Clone, Debug, Default)]
pub struct SeaweedPlan {
    /// How long giving a file id takes.
    pub(crate) assign_time: Option<Distribution>,
    /// What becomes of requests for ids, with the sum of the shares up to and with each.
    pub assign_mix: Vec<(f64, AssignFault)>,
    /// How long volumes are being made.
    pub growth: Option<Growth>,
    /// Who leads from when on.
    pub leaders: Vec<LeaderChange>,
    /// When volume servers are away.
    pub away: Vec<Away>,
}

impl SeaweedPlan {
    /// Returns how long giving a file id takes, in ns, as `unit` of [0, 1) draws it; `None`: no
    /// time.
    pub fn assign_ns(&self, unit: f64) -> Option<f64> {
        self.assign_time.as_ref().map(|time| time.draw(unit))
    }
}

/// What becomes of a request for a file id that is not given as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignFault {
    /// Volumes are being made.
    Growing,
    /// No volume can be made.
    Full,
    /// The master fails.
    Failed,
    /// There is no answer.
    Silent,
    /// The id comes with a token that is no longer valid.
    ExpiredToken,
    /// The id comes with the token of another file.
    WrongToken,
}

impl AssignFault {
    /// Returns its name in scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Growing => "growing",
            Self::Full => "full",
            Self::Failed => "failed",
            Self::Silent => "silent",
            Self::ExpiredToken => "expired_token",
            Self::WrongToken => "wrong_token",
        }
    }
}

/// How long volumes are being made that a collection has none of yet.
#[derive(Clone, Copy, Debug)]
pub enum Growth {
    /// So many requests are refused.
    Assigns(u64),
    /// Requests are refused for so long, in ns.
    Lasting(u64),
}

/// A change of who leads.
#[derive(Clone, Copy, Debug)]
pub struct LeaderChange {
    /// When it happens.
    pub when: When,
    /// Who leads then, counted from 0; `None`: nobody.
    pub master: Option<usize>,
}

/// When something happens.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// At a time.
    At(u64),
    /// After so many requests for ids.
    AfterAssigns(u64),
}

/// A stretch in which a volume server is away.
#[derive(Clone, Copy, Debug)]
pub struct Away {
    /// Which one, counted from 0.
    pub server: usize,
    /// From when on.
    pub from: u64,
    /// For how long.
    pub lasting: u64,
    /// Whether masters notice.
    pub is_noticed: bool,
}
