//! The environment: warp's variable names are taken beside ours.
#![expect(clippy::disallowed_methods, reason = "this module owns the environment")]

use std::path::PathBuf;

use anyhow::{Context, Result};
use plimsoll_http::{Proxies, ProxyVariables, TlsOptions};

/// Variables that have a `WARP_` twin. Ours wins where both are set.
const SHARED: [&str; 7] =
    ["HOST", "ACCESS_KEY", "SECRET_KEY", "SESSION_TOKEN", "TLS", "REGION", "INFLUXDB_CONNECT"];

/// Gives every unset `PLIMSOLL_*` variable the value of its `WARP_*` twin.
pub(crate) fn accept_warp_names() {
    for name in SHARED {
        let ours = format!("PLIMSOLL_{name}");
        if let (Err(std::env::VarError::NotPresent), Ok(value)) =
            (std::env::var(&ours), std::env::var(format!("WARP_{name}")))
        {
            // SAFETY: nothing else runs yet: this is the first thing that `main` does.
            unsafe { std::env::set_var(ours, value) };
        }
    }
}

/// Returns the words of the command line.
pub(crate) fn words() -> impl Iterator<Item = std::ffi::OsString> {
    std::env::args_os()
}

/// Returns the value of a variable, as job files of fio's name them.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns no variable: the environment of a run that may not use ours.
pub(crate) fn no_variable(_: &str) -> Option<String> {
    None
}

/// Returns the proxies of the customary variables (`--proxy env`); `None` if they name none. Where
/// TLS is spoken to them, `trust` says whom to trust.
pub(crate) fn proxies(trust: &TlsOptions) -> Result<Option<Proxies>> {
    let given = |names: [&str; 2]| names.iter().find_map(|name| variable(name));
    let http = given(["HTTP_PROXY", "http_proxy"]);
    let https = given(["HTTPS_PROXY", "https_proxy"]);
    let all = given(["ALL_PROXY", "all_proxy"]);
    let exceptions = given(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let variables = ProxyVariables {
        http: http.as_deref(),
        https: https.as_deref(),
        all: all.as_deref(),
        exceptions: &exceptions,
    };
    Proxies::parse(&variables, trust).context("--proxy env: HTTP_PROXY, HTTPS_PROXY or ALL_PROXY")
}

/// Returns the folder of this program, and those in which programs are looked for.
pub(crate) fn program_folders() -> (Option<PathBuf>, Vec<PathBuf>) {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_path_buf()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    (beside, std::env::split_paths(&path).collect())
}

/// Returns the directory for temporary files.
pub(crate) fn temporary_directory() -> PathBuf {
    std::env::temp_dir()
}

/// Tells whether the terminal says of itself that it only prints.
pub(crate) fn has_dumb_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|value| value == "dumb")
}

/// Tells whether the user asked all programs for plain text (no-color.org).
pub(crate) fn wants_no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
