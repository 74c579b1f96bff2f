//! Looks at a page with a real headless Chromium: what it logs, what it asks for, what becomes of
//! it.
#![expect(
    clippy::disallowed_methods,
    reason = "the browser is found by environment, and its log is a file"
)]
#![expect(clippy::print_stderr, reason = "a test that does not run says so")]

mod page;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

pub use page::{Page, View};

const NO_LIVE: &str = "PLIMSOLL_NO_LIVE";
const PROGRAM: &str = "chromium";
/// How long a look may take; a first start on a busy machine takes seconds.
const LOOK_MAX: Duration = Duration::from_secs(120);
/// What keeps the browser itself from talking, and from waiting for a screen.
const QUIET: [&str; 15] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-features=OptimizationHints,MediaRouter,Translate,DialMediaRouteProvider",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    // Nothing leaves the machine: a page that asks for something is caught by its asking.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--metrics-recording-only",
];

/// What a browser saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The lines of the page's console, refusals of the page's own policy among them.
    pub console: Vec<String>,
    /// The addresses that the page asked for beside its own file.
    pub requests: Vec<String>,
    /// The document after it was loaded.
    pub dom: String,
}

/// Opens a local HTML file in a headless Chromium; `None` only when there is none and the live
/// tier was switched off by name.
///
/// # Panics
/// When there is no Chromium and the live tier was not switched off, or when the browser fails: a
/// test that silently did not run is no test.
pub fn look(html: &Path) -> Option<Looked> {
    let program = match found(std::env::var_os("PATH"), std::env::var_os(NO_LIVE).is_some()) {
        Ok(Some(program)) => program,
        Ok(None) => {
            eprintln!("{PROGRAM} is not on the path and {NO_LIVE} is set: nothing looked at");
            return None;
        }
        Err(sentence) => panic!("{sentence}"),
    };
    let folder = tempfile::tempdir().expect("a folder for the browser's profile can be made");
    let log = folder.path().join("net-log.json");
    let mut command = Command::new(program);
    command
        .args(QUIET)
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .args(["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}", html.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (dom, stderr) = run(command.spawn().expect("chromium can be started"));
    assert!(dom.contains("</html>"), "chromium gave no document: {stderr}");
    let log = std::fs::read_to_string(&log).expect("chromium wrote its net log");
    let console = stderr.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned);
    Some(Looked { console: console.collect(), requests: requests(&log), dom })
}

/// Returns where Chromium lies, `None` when it may be missing, or a sentence when it may not.
fn found(path: Option<std::ffi::OsString>, may_miss: bool) -> Result<Option<PathBuf>, String> {
    let path = path.unwrap_or_default();
    let program = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    match program.into_iter().find(|program| program.is_file()) {
        None if !may_miss => Err(format!(
            "{PROGRAM} is not on the path: run `cargo xtask test`, which installs it, or set \
             {NO_LIVE}=1 to leave the live tests out"
        )),
        program => Ok(program),
    }
}

/// Returns what a browser wrote to stdout and to stderr until it ended; ends it when that takes
/// too long.
fn run(mut child: Child) -> (String, String) {
    let (done, ended) = mpsc::channel();
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let mut stderr = child.stderr.take().expect("stderr is piped");
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = stderr.read_to_end(&mut text);
        (String::from_utf8_lossy(&text).into_owned(), read)
    });
    let document = std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.read_to_end(&mut text);
        // Nobody listens any more once it took too long.
        let _ = done.send(());
        (String::from_utf8_lossy(&text).into_owned(), read)
    });
    let in_time = ended.recv_timeout(LOOK_MAX).is_ok();
    if !in_time {
        child.kill().expect("a child can be ended");
    }
    // Waited for in any case: the net log is whole only then.
    child.wait().expect("a child can be waited for");
    let (dom, read) = document.join().expect("reading does not panic");
    let (stderr, read_too) = errors.join().expect("reading does not panic");
    assert!(in_time, "chromium took longer than {LOOK_MAX:?}: {stderr}");
    read.and(read_too).expect("the output of chromium can be read");
    (dom, stderr)
}

/// Returns the addresses in a net log that the page asked for: each request names its initiator,
/// and those of the browser itself have none. Files do not pass the network.
fn requests(log: &str) -> Vec<String> {
    let log: serde_json::Value = serde_json::from_str(log).expect("a net log is JSON");
    let source = log["constants"]["logSourceType"]["URL_REQUEST"].as_u64();
    assert!(source.is_some(), "the net log knows no requests");
    let events = log["events"].as_array().expect("a net log has events");
    let of_page = |event: &&serde_json::Value| {
        let initiator = event["params"]["initiator"].as_str();
        event["source"]["type"].as_u64() == source
            && initiator.is_some_and(|initiator| initiator != "not an origin")
    };
    let urls = events.iter().filter(of_page).filter_map(|event| event["params"]["url"].as_str());
    let mut urls: Vec<String> = urls.map(str::to_owned).collect();
    urls.sort_unstable();
    urls.dedup();
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_logs_and_asks_for_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("noisy.html");
        // The discard port: nobody listens, but asking is what counts.
        let html = "<!DOCTYPE html><html><body><img src=\"http://127.0.0.1:9/x.png\">\
                    <iframe src=\"http://store.example/f\"></iframe><script>\
                    console.error('a ' + 'complaint'); document.body.id = 'made';</script>";
        std::fs::write(&page, html).unwrap();
        let Some(looked) = look(&page) else { return };
        assert!(looked.console.iter().any(|line| line.contains("a complaint")), "{looked:?}");
        assert_eq!(looked.requests, ["http://127.0.0.1:9/x.png", "http://store.example/f"]);
        assert!(looked.dom.contains("id=\"made\""), "{}", looked.dom);
    }

    #[test]
    fn a_missing_browser_is_refused_unless_it_may_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().as_os_str().to_owned());
        let sentence = found(path.clone(), false).unwrap_err();
        assert!(sentence.contains("cargo xtask test"), "{sentence}");
        assert_eq!(found(path.clone(), true), Ok(None));
        let program = folder.path().join(PROGRAM);
        std::fs::write(&program, "").unwrap();
        assert_eq!(found(path, true), Ok(Some(program)));
    }
}
