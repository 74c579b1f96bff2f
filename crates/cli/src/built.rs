//! How this program was built, as `build.rs` found out.

use plimsoll_conduct::{Built, machine};

/// What the record says of it.
pub(crate) const BUILT: Built = Built {
    commit: option_env!("PLIMSOLL_BUILT_OF"),
    profile: Some(env!("PLIMSOLL_PROFILE")),
    target: Some(env!("PLIMSOLL_TARGET")),
};

/// Returns what `--version` prints: version and commit, then how it was built, and the features of
/// this machine's processor that it uses.
pub(crate) fn in_words() -> String {
    let features = machine::cpu_features();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(" ") };
    format!(
        "{}\nbuilt     for {}, profile {}\nprocessor {features}",
        env!("PLIMSOLL_VERSION"),
        env!("PLIMSOLL_TARGET"),
        env!("PLIMSOLL_PROFILE"),
    )
}
