//! A page in a real headless Chromium that is worked with: opened, clicked through, typed into,
//! pictured, by the DevTools protocol over a pair of named pipes. No port is opened for that.
#![expect(
    clippy::disallowed_methods,
    reason = "the browser is spoken to by pipes, and pictures are files"
)]

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{LOOK_MAX, NO_LIVE, QUIET, found};

/// How long a page is waited for to come to what a test expects.
const UNTIL_MAX: Duration = Duration::from_secs(60);
/// What the browser is started by, so that its descriptors 3 and 4 are the pipes.
const START: &str = "exec \"$0\" \"$@\" 3<\"$PLIMSOLL_PIPE_TO\" 4>\"$PLIMSOLL_PIPE_FROM\"";

/// How large the window is, in CSS pixels, and whether the user prefers dark pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Whether dark pages are preferred.
    pub is_dark: bool,
}

/// A browser with one page.
pub struct Page {
    child: Child,
    to: File,
    messages: mpsc::Receiver<Value>,
    last_id: u64,
    session: Option<String>,
    /// What the page has complained of: errors, exceptions, refusals of its own policy.
    complaints: Vec<String>,
    /// The hosts that it has asked for something.
    asked: HashMap<String, u64>,
    _folder: tempfile::TempDir,
}

impl Page {
    /// Starts a browser with an empty page; `None` only when there is no browser and the live tier
    /// was switched off by name.
    ///
    /// # Panics
    /// When there is no Chromium and the live tier was not switched off, or when it does not start.
    pub fn open(view: View) -> Option<Self> {
        let path = std::env::var_os("PATH");
        let program = found(path, std::env::var_os(NO_LIVE).is_some());
        let program = program.unwrap_or_else(|sentence| panic!("{sentence}"))?;
        let folder = tempfile::tempdir().expect("a folder for the browser's profile can be made");
        let (pipe_to, pipe_from) = (folder.path().join("to"), folder.path().join("from"));
        let (to, from) = (pipe(&pipe_to), pipe(&pipe_from));
        // A page under test is on this machine; no other name leads anywhere.
        let quiet = QUIET.iter().filter(|flag| !flag.starts_with("--host-resolver-rules"));
        let child = Command::new("/bin/sh")
            .args(["-c", START])
            .arg(program)
            .args(quiet)
            .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .args(["--remote-debugging-pipe", "--hide-scrollbars", "about:blank"])
            .env("PLIMSOLL_PIPE_TO", &pipe_to)
            .env("PLIMSOLL_PIPE_FROM", &pipe_from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium can be started");
        let mut page = Self {
            child,
            to,
            messages: listen(from),
            last_id: 0,
            session: None,
            complaints: Vec::new(),
            asked: HashMap::new(),
            _folder: folder,
        };
        page.attach();
        page.show_as(view);
        Some(page)
    }

    fn attach(&mut self) {
        let made = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = made["targetId"].as_str().expect("a target has an id").to_owned();
        let attach = json!({ "targetId": target, "flatten": true });
        let attached = self.call("Target.attachToTarget", attach);
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "DOM"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Shows the page in a window of that size and colour.
    pub fn show_as(&mut self, view: View) {
        let metrics = json!({
            "width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if view.is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Opens an address and waits until its document is complete.
    pub fn go(&mut self, url: &str) {
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer.get("errorText").is_none(), "{url}: {answer}");
        self.until("document.readyState === 'complete'");
    }

    /// Returns what an expression comes to in the page; a promise is waited for.
    ///
    /// # Panics
    /// When the expression throws.
    pub fn eval(&mut self, expression: &str) -> Value {
        self.try_eval(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn try_eval(&mut self, expression: &str) -> Result<Value, String> {
        let asked = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
            "userGesture": true,
        });
        let answer = self.call("Runtime.evaluate", asked);
        match answer.get("exceptionDetails") {
            Some(details) => Err(details.to_string()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Waits until an expression holds in the page, also over a change of document, and returns
    /// what it comes to.
    ///
    /// # Panics
    /// When it does not come to hold in a minute; the sentence has the text of the page.
    pub fn until(&mut self, expression: &str) -> Value {
        let limit_ms = UNTIL_MAX.as_millis();
        let wait = format!(
            "new Promise((ok, no) => {{ const end = performance.now() + {limit_ms}; const look = \
             () => {{ let held; try {{ held = ({expression}); }} catch {{ held = null; }} if \
             (held) ok(held === true ? true : String(held)); else if (performance.now() > end) \
             no(new Error('never')); else setTimeout(look, 40); }}; look(); }})"
        );
        // A promise goes with its document; a few changes of document may lie in between.
        for _ in 0..20 {
            match self.try_eval(&wait) {
                Ok(held) if !held.is_null() => return held,
                Err(error) if error.contains("never") => break,
                _ => {}
            }
        }
        let text = self.try_eval("location.href + '\\n' + document.body.innerText");
        panic!("never came to hold: {expression}\n{text:?}");
    }

    /// Clicks on what a CSS selector names.
    pub fn click(&mut self, selector: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.until(&format!("{found} && !{found}.disabled"));
        self.eval(&format!("{found}.click()"));
    }

    /// Puts a value into the field that a CSS selector names, as one who types does.
    pub fn fill(&mut self, selector: &str, value: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.until(&format!("!!{found}"));
        self.eval(&format!(
            "{{ const field = {found}; field.focus(); field.value = {}; for (const kind of \
             ['input', 'change']) field.dispatchEvent(new Event(kind, {{ bubbles: true }})); }}",
            json!(value)
        ));
    }

    /// Presses a key by its DOM name, such as `Tab` or `Enter`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, None),
            "Enter" => (13, Some("\r")),
            "Escape" => (27, None),
            " " => (32, Some(" ")),
            "ArrowDown" => (40, None),
            "ArrowUp" => (38, None),
            other => panic!("no test has pressed {other} before: give it its code"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
            });
            if let (Some(text), "keyDown") = (text, kind) {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Gives the file field that a CSS selector names these files.
    pub fn choose_files(&mut self, selector: &str, files: &[&Path]) {
        self.until(&format!("!!document.querySelector({})", json!(selector)));
        let document = self.call("DOM.getDocument", json!({}));
        let root = document["root"]["nodeId"].clone();
        let found = json!({ "nodeId": root, "selector": selector });
        let node = self.call("DOM.querySelector", found)["nodeId"].clone();
        let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        self.call("DOM.setFileInputFiles", json!({ "nodeId": node, "files": files }));
    }

    /// Saves a picture of the whole page as PNG.
    pub fn picture(&mut self, path: &Path) {
        let asked = json!({ "format": "png", "captureBeyondViewport": true });
        let data = self.call("Page.captureScreenshot", asked)["data"].clone();
        let png = BASE64.decode(data.as_str().expect("a picture is text")).expect("of base64");
        std::fs::write(path, png).expect("a picture can be written");
    }

    /// Returns what the page has complained of so far: errors, uncaught exceptions, and what its
    /// own policy refused.
    pub fn complaints(&mut self) -> Vec<String> {
        // Events lie before the answer to a later call.
        self.eval("true");
        self.complaints.clone()
    }

    /// Returns the hosts that the page has asked for something, in order.
    pub fn hosts_asked(&mut self) -> Vec<String> {
        self.eval("true");
        let mut hosts: Vec<String> = self.asked.keys().cloned().collect();
        hosts.sort_unstable();
        hosts
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("chromium takes a message");
        loop {
            let message = self.messages.recv_timeout(LOOK_MAX);
            let message = message.unwrap_or_else(|_| panic!("chromium did not answer {method}"));
            if message["id"].as_u64() == Some(self.last_id) {
                let failed = message.get("error");
                assert!(failed.is_none() || method == "Runtime.evaluate", "{method}: {message}");
                // A document that goes takes its promises along.
                return failed.map_or_else(|| message["result"].clone(), |_| json!({}));
            }
            self.note(&message);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(params["exceptionDetails"].to_string());
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.complaints.push(params["args"].to_string());
            }
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                let entry = &params["entry"];
                self.complaints.push(format!("{} {}", entry["text"], entry["url"]));
            }
            Some("Network.requestWillBeSent") => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                if let Some((_, rest)) = url.split_once("://") {
                    let host = rest.split('/').next().unwrap_or_default().to_owned();
                    *self.asked.entry(host).or_default() += 1;
                }
            }
            _ => {}
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // A browser that has gone already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a named pipe, open at both ends so that opening it waits for nobody.
fn pipe(path: &Path) -> File {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a named pipe can be made");
    OpenOptions::new().read(true).write(true).open(path).expect("a named pipe can be opened")
}

/// Hands on the messages that come from a pipe, each of which ends in a zero.
fn listen(from: File) -> mpsc::Receiver<Value> {
    let (hand_on, messages) = mpsc::channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut bytes = Vec::new();
            if from.read_until(0, &mut bytes).unwrap_or(0) == 0 {
                return;
            }
            bytes.pop();
            let message = serde_json::from_slice(&bytes).expect("chromium speaks JSON");
            if hand_on.send(message).is_err() {
                return;
            }
        }
    });
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: View = View { width: 400, height: 700, is_dark: false };

    #[test]
    fn a_page_is_clicked_typed_into_and_pictured() {
        let Some(mut page) = Page::open(VIEW) else { return };
        let folder = tempfile::tempdir().unwrap();
        let html = folder.path().join("page.html");
        std::fs::write(
            &html,
            "<!DOCTYPE html><title>t</title><input id=i><input id=f type=file><button id=b \
             onclick=\"document.title = i.value + innerWidth + matchMedia('(prefers-color-scheme: \
             dark)').matches\">go</button>",
        )
        .unwrap();
        page.go(&format!("file://{}", html.display()));
        page.fill("#i", "typed ");
        page.click("#b");
        assert_eq!(page.until("document.title !== 't' && document.title"), "typed 400false");
        page.show_as(View { width: 1600, is_dark: true, ..VIEW });
        page.eval("b.focus()");
        page.press("Enter");
        page.until("document.title === 'typed 1600true'");
        page.choose_files("#f", &[&html]);
        assert_eq!(page.eval("f.files[0].name"), "page.html");
        let picture = folder.path().join("page.png");
        page.picture(&picture);
        assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
        assert!(page.complaints().is_empty());
    }

    #[test]
    fn what_a_page_complains_of_and_asks_for_is_seen() {
        let Some(mut page) = Page::open(VIEW) else { return };
        let folder = tempfile::tempdir().unwrap();
        let html = folder.path().join("page.html");
        let policy = "<meta http-equiv=content-security-policy content=\"script-src 'self'\">";
        let script = "<script>document.title = 'ran'</script>";
        std::fs::write(&html, format!("{policy}{script}<img src=http://127.0.0.1:9/x>")).unwrap();
        page.go(&format!("file://{}", html.display()));
        let complaints = page.complaints().join("\n");
        assert!(complaints.contains("Content Security Policy"), "{complaints}");
        // The document itself comes from no host.
        assert_eq!(page.hosts_asked(), ["", "127.0.0.1:9"]);
        assert_eq!(page.eval("document.title"), "");
    }
}
