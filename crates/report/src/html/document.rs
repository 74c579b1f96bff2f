//! The frame of a page: its head with the policy, its style, its scripts and its data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::limits::{CELL_CHARS_MAX, cut_name};
use super::{colour, plot};
use crate::table::harmless;

const STYLE: &str = include_str!("page.css");
const UPLOT_STYLE: &str = include_str!("vendor/uPlot.min.css");
/// uPlot draws the charts, ours says what they are and what happens where one points at them.
const SCRIPT: &str =
    concat!(include_str!("vendor/uPlot.iife.min.js"), "\n", include_str!("page.js"));

/// A page that is put together.
pub(super) struct Document {
    /// What it is called, as HTML.
    title: String,
    body: String,
    charts: String,
    style: String,
}

impl Document {
    /// Returns a page with `body` as HTML in its main part, and `charts` for the script as JSON
    /// within a script.
    pub(super) fn new(title: &str, body: String, charts: String) -> Self {
        let (colours, rules) = (colour::variables(), plot::style_rules(&body));
        let style = format!("\n{UPLOT_STYLE}\n{colours}\n{STYLE}{rules}");
        Self { title: cut_name(title, CELL_CHARS_MAX), body, charts, style }
    }

    /// Returns about how long it is without its data.
    pub(super) fn len(&self) -> usize {
        const HEAD: usize = 2_000;
        HEAD + SCRIPT.len() + self.style.len() + self.body.len() + self.charts.len()
    }

    /// Returns the page; `note` is HTML below its body, `data` JSON within a script.
    pub(super) fn render(&self, note: &str, data: &str) -> String {
        let Self { title, body, charts, style } = self;
        let policy = format!("{}; style-src {}", policy(), hash(style));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title} · plimsoll</title>\n\
             <style>{style}</style>\n</head>\n<body>\n<main>\n{body}{note}</main>\n\
             <script type=\"application/json\" id=\"charts\">{charts}</script>\n\
             <script>{SCRIPT}</script>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n</body>\n</html>\n"
        )
    }
}

/// Returns what a page may do but for its style, as a content security policy: run its script, and
/// load nothing at all. Whoever serves a page may say the same in a header.
pub fn policy() -> String {
    format!("default-src 'none'; img-src data:; script-src {}", hash(SCRIPT))
}

/// Returns the source expression that allows an inline script or style with that text.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(Sha256::digest(text.as_bytes())))
}

/// Returns JSON in which nothing ends the element that holds it: a `<` occurs in texts only, where
/// JSON has another way to write it.
pub(super) fn within_script(data: &Value) -> String {
    data.to_string().replace('<', "\\u003c")
}

/// Returns text that is safe within an element and within a quoted attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_styles_cannot_end_their_elements() {
        let lower = SCRIPT.to_lowercase();
        assert!(!lower.contains("</script") && !lower.contains("<!--"));
        assert!(!format!("{STYLE}{UPLOT_STYLE}").to_lowercase().contains("</style"));
    }

    #[test]
    fn a_hash_is_that_of_the_standard() {
        // The example of CSP level 3, section 8.3.
        let of = hash("alert('Hello, world.');");
        assert_eq!(of, "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='");
    }
}
