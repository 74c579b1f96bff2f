//! What a server tells of itself to anybody.

use serde_json::Value;

use crate::session::SwiftSession;

/// More than any server says.
const INFO_BYTES_MAX: usize = 1 << 20;

/// What a server tells of itself; empty where it tells nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info(Option<Value>);

impl Info {
    /// Tells whether it has a part of that name, as far as it says what it has.
    pub(crate) fn has(&self, part: &str) -> bool {
        self.0.as_ref().is_none_or(|all| !all[part].is_null())
    }

    /// Returns which version it is.
    pub(crate) fn version(&self) -> Option<&str> {
        self.0.as_ref()?["swift"]["version"].as_str()
    }
}

impl SwiftSession {
    /// Asks a server about itself; one that says nothing is no failure.
    pub(crate) async fn info(&mut self) -> Info {
        self.set_info();
        let done = self.read("", INFO_BYTES_MAX).await;
        let said = || serde_json::from_slice::<Value>(&self.wire.answer.body).ok();
        Info(done.result.ok().and_then(|()| said()).filter(Value::is_object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_nothing_may_have_everything() {
        assert!(Info::default().has("slo") && Info::default().version().is_none());
        let said = serde_json::json!({"swift": {"version": "2.38.3"}, "slo": {}});
        let info = Info(Some(said));
        assert!(info.has("slo") && !info.has("dlo"));
        assert_eq!(info.version(), Some("2.38.3"));
    }
}
