//! The purposes and the outcomes of the probes of a search.

named! {
    /// Why a probe is made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProbeRole {
        /// To find out which rate is too high.
        Ramp = "ramp",
        /// To find out where between two rates the answer is.
        Find = "find",
        /// To know the answer better.
        Fit = "fit",
        /// To find out whether the store is back after an overload.
        Descent = "descent",
    }
}

named! {
    /// The outcome of a probe.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProbeOutcome {
        /// It kept what was asked.
        Kept = "kept",
        /// It missed a bound.
        Missed = "missed",
        /// What was waiting grew as long as it lasted.
        Overloaded = "overloaded",
        /// It ended before its time.
        Cut = "cut",
        /// The client was disturbed too much of the time: it shows nothing.
        Disturbed = "disturbed",
    }
}
