//! What only a SeaweedFS does, checked: its masters and its volume servers. Times are in ns since
//! the script began.

use super::Distribution;

/// What only a SeaweedFS does.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeaweedPlan {
    /// How long giving a file id takes.
    pub(crate) assign_time: Option<Distribution>,
    /// What becomes of requests for ids, with the sum of the shares up to and with each.
    pub(crate) assign_mix: Vec<(f64, AssignFault)>,
    pub(crate) growth: Option<Growth>,
    pub(crate) leaders: Vec<LeaderChange>,
    pub(crate) away: Vec<Away>,
}

/// What becomes of a request for a file id that is not given as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AssignFault {
    Growing,
    Full,
    Failed,
    Silent,
    ExpiredToken,
    WrongToken,
}

impl AssignFault {
    /// Returns its name in scripts.
    pub(crate) const fn name(self) -> &'static str {
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
pub(crate) enum Growth {
    Assigns(u64),
    Lasting(u64),
}

/// A change of who leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaderChange {
    pub(crate) when: When,
    pub(crate) master: Option<usize>,
}

/// When something happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    At(u64),
    AfterAssigns(u64),
}

/// A stretch in which a volume server is away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Away {
    pub(crate) server: usize,
    pub(crate) from: u64,
    pub(crate) lasting: u64,
    pub(crate) is_noticed: bool,
}
