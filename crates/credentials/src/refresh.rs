//! Keys that expire, found again before they do. It waits for nothing: whoever has it asks when
//! [`Refresher::due`] says so.

use std::time::Duration;

use plimsoll_model::WallTime;

use crate::{Chain, CredentialsError, Found, Keys, Result, Source};

/// Keys are found again when a third of their time is left, or so much of it.
const LEAD_MAX: Duration = Duration::from_secs(300);
const LEAD_SHARE: u32 = 3;
/// No source is asked more often than this.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// After a failure the source is asked again so much later, twice as much after each further one.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
const PAUSE_AFTER_FAILURE_MAX: Duration = Duration::from_secs(30);

/// Finds the keys of one source again.
pub struct Refresher {
    chain: Chain,
    source: Source,
    /// What was found last.
    keys: Keys,
    expires: WallTime,
    due: Option<WallTime>,
    failures_count: u32,
}

/// What came of asking again.
#[derive(Debug)]
pub enum Refreshed {
    /// Other keys.
    New(Keys),
    /// The same ones: the source has no others yet.
    Same,
    /// No keys; the source is asked again later.
    Failed {
        /// Why.
        error: CredentialsError,
        /// Whether the time before went well.
        is_first: bool,
        /// Until when the keys hold that were found last.
        hold_until: WallTime,
    },
}

impl Refresher {
    /// Returns what finds these keys again, asking where they were found; `None` where they do not
    /// expire.
    pub fn of(chain: Chain, found: &Found) -> Option<Self> {
        chain.known.add(found.keys.secrets());
        let expires = found.keys.expires?;
        let due = Some(due(chain.now(), expires));
        let (source, keys) = (found.source.clone(), found.keys.clone());
        Some(Self { chain, source, keys, expires, due, failures_count: 0 })
    }

    /// Returns where the keys are from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns how long it is until the source is to be asked again; `None` where it need not be
    /// any more.
    pub fn due_in(&self) -> Option<Duration> {
        let left = self.due?.as_unix_ns().saturating_sub(self.chain.now().as_unix_ns());
        Some(Duration::from_nanos(left))
    }

    /// Asks the source again, which may take as long as the patience of the chain.
    pub fn ask(&mut self) -> Refreshed {
        let found = self.again();
        let now = self.chain.now();
        match found {
            Ok(keys) => {
                self.failures_count = 0;
                self.due = keys.expires.map(|expires| due(now, expires));
                self.expires = keys.expires.unwrap_or(self.expires);
                let is_same = |of: &Keys| {
                    of.access_key == keys.access_key && of.session_token == keys.session_token
                };
                if is_same(&self.keys) {
                    return Refreshed::Same;
                }
                self.keys = keys.clone();
                self.chain.known.add(keys.secrets());
                Refreshed::New(keys)
            }
            Err(error) => {
                let doubled = PAUSE_AFTER_FAILURE * (1 << self.failures_count.min(5));
                self.due = Some(now.after(doubled.min(PAUSE_AFTER_FAILURE_MAX)));
                self.failures_count += 1;
                let (is_first, hold_until) = (self.failures_count == 1, self.expires);
                Refreshed::Failed { error, is_first, hold_until }
            }
        }
    }

    fn again(&self) -> Result<Keys> {
        let keys = self.chain.ask(&self.source)?;
        let keys = keys.ok_or_else(|| CredentialsError::Gone { from: self.source.clone() })?;
        self.chain.refuse_expired(&keys, &self.source)?;
        Ok(keys)
    }
}

/// Returns when keys are to be found again that expire then.
fn due(now: WallTime, expires: WallTime) -> WallTime {
    let left = Duration::from_nanos(expires.as_unix_ns().saturating_sub(now.as_unix_ns()));
    let lead = (left / LEAD_SHARE).min(LEAD_MAX);
    now.after((left - lead).max(PAUSE_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_again_when_a_third_of_their_time_is_left() {
        let now = WallTime::from_unix_ns(1_795_251_600_000_000_000);
        let after = |seconds| now.after(Duration::from_secs(seconds));
        for (lasts, asked) in [(60, 40), (900, 600), (3600, 3300), (21_600, 21_300)] {
            assert_eq!(due(now, after(lasts)), after(asked), "{lasts} s");
        }
        // What is about to expire is not asked for in a row without a pause.
        assert_eq!(due(now, now), now.after(Duration::from_millis(500)));
    }
}
