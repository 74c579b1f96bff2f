//! What `plimsoll prove` found: claims, truths, measurements and verdicts as text and as JSON.

use std::fmt::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::format;

/// The schema's name and version.
pub const PROOF_SCHEMA: &str = "plimsoll.proof/1";
/// Checks of a proof that are shown in a text although they hold.
const CHECKS_SHOWN_MAX: usize = 12;

/// What one or several proofs found. The same document is the certificate of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Certificate {
    /// `plimsoll.proof/1`.
    pub schema: String,
    /// The version of the program that was proved.
    pub tool_version: String,
    /// When, RFC 3339, UTC.
    pub made_at: String,
    /// The machine: operating system, processor, cores.
    pub machine: String,
    /// The number that fixed all choices.
    pub seed: u64,
    /// Where the scripted store was: `virtual` time or `loopback` sockets.
    pub place: String,
    /// The proofs in the order in which they were made.
    pub proofs: Vec<Proof>,
}

/// One proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// Its name on the command line.
    pub name: String,
    /// What is claimed.
    pub claim: String,
    /// What came of it.
    pub verdict: Verdict,
    /// Why it was skipped or could not be finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was compared.
    pub checks: Vec<Check>,
}

/// What came of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check holds.
    Pass,
    /// One does not.
    Fail,
    /// It could not be tried here.
    Skip,
}

impl Verdict {
    /// Returns the word in a text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Skip => "SKIP",
        }
    }
}

/// A truth and what was measured of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// What was compared.
    pub what: String,
    /// The truth, from the script, its ledger or a closed form.
    pub truth: String,
    /// What was measured.
    pub measured: String,
    /// Whether both agree as nearly as was claimed.
    pub holds: bool,
}

impl Proof {
    /// Returns a proof whose verdict is that of its checks; none at all prove nothing.
    pub fn of(name: &str, claim: &str, checks: Vec<Check>) -> Self {
        let holds = !checks.is_empty() && checks.iter().all(|check| check.holds);
        let verdict = if holds { Verdict::Pass } else { Verdict::Fail };
        Self { name: name.to_owned(), claim: claim.to_owned(), verdict, reason: None, checks }
    }

    /// Returns a proof that came to nothing.
    pub fn without(name: &str, claim: &str, verdict: Verdict, reason: String) -> Self {
        let reason = Some(reason);
        Self { name: name.to_owned(), claim: claim.to_owned(), verdict, reason, checks: Vec::new() }
    }
}

impl Certificate {
    /// Returns how many proofs have that verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.proofs.iter().filter(|proof| proof.verdict == verdict).count()
    }

    /// Returns the document's JSON Schema.
    #[cfg(feature = "schema")]
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

/// Returns one proof as a line of at most 80 columns: what it is about in at most 42, how many
/// checks it has, how long it took. Below it stand the reason, if there is one, and what does not
/// hold.
pub fn line(proof: &Proof, about: &str, took: Duration, color: bool) -> String {
    let Proof { name, verdict, reason, checks, .. } = proof;
    let unit = if checks.len() == 1 { "check " } else { "checks" };
    let (count, took) = (format!("{} {unit}", checks.len()), format::duration(took));
    let mut out =
        format!("{}  {name:<9}  {about:<42}  {count:>10}  {took:>7}\n", painted(*verdict, color));
    if let Some(reason) = reason {
        let _ = writeln!(out, "      {}", wrapped(reason, 74, 6));
    }
    out.extend(checks.iter().filter(|check| !check.holds).map(in_lines));
    out
}

/// Returns one proof as text.
pub fn text(proof: &Proof, color: bool) -> String {
    let mut out = String::new();
    let painted = painted(proof.verdict, color);
    let reason = proof.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    let _ = writeln!(out, "{painted}  {}", wrapped(&format!("{}{reason}", proof.name), 74, 6));
    let _ = writeln!(out, "      claim     {}", wrapped(&proof.claim, 64, 16));
    let hidden = proof.checks.len().saturating_sub(CHECKS_SHOWN_MAX);
    let (mut shown, mut left_out) = (0, 0);
    for check in &proof.checks {
        if check.holds && shown >= CHECKS_SHOWN_MAX && hidden > 0 {
            left_out += 1;
            continue;
        }
        shown += 1;
        out += &in_lines(check);
    }
    if left_out > 0 {
        let _ = writeln!(out, "      and {left_out} more that hold; `json` has them all");
    }
    out
}

fn painted(verdict: Verdict, color: bool) -> String {
    let name = verdict.name();
    match verdict {
        _ if !color => name.to_owned(),
        Verdict::Pass => format!("\x1b[32m{name}\x1b[0m"),
        Verdict::Fail => format!("\x1b[1;31m{name}\x1b[0m"),
        Verdict::Skip => format!("\x1b[33m{name}\x1b[0m"),
    }
}

fn in_lines(check: &Check) -> String {
    let Check { what, truth, measured, holds } = check;
    let mark = if *holds { "" } else { "   WRONG" };
    format!("      {what}\n        truth     {truth}\n        measured  {measured}{mark}\n")
}

/// Returns the line that ends the text of several proofs.
pub fn summary(certificate: &Certificate) -> String {
    let count = |verdict| certificate.count(verdict);
    let checks: usize = certificate.proofs.iter().map(|proof| proof.checks.len()).sum();
    format!(
        "{} of {} proofs hold, {} failed, {} skipped; {checks} checks, seed {}\n",
        count(Verdict::Pass),
        certificate.proofs.len(),
        count(Verdict::Fail),
        count(Verdict::Skip),
        certificate.seed
    )
}

/// Breaks a sentence into lines of at most `width` columns, those after the first indented.
fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(holds: bool) -> Check {
        let text = |text: &str| text.to_owned();
        Check { what: text("p99"), truth: text("902 ms"), measured: text("903 ms"), holds }
    }

    #[test]
    fn a_proof_holds_only_with_checks_that_all_hold() {
        assert_eq!(Proof::of("a", "b", vec![check(true); 2]).verdict, Verdict::Pass);
        assert_eq!(Proof::of("a", "b", vec![check(true), check(false)]).verdict, Verdict::Fail);
        assert_eq!(Proof::of("a", "b", Vec::new()).verdict, Verdict::Fail);
    }

    #[test]
    fn the_committed_schema_is_the_schema() {
        let current = serde_json::to_string_pretty(&Certificate::json_schema()).unwrap() + "\n";
        plimsoll_testkit::check_format("proof.schema.json", &current);
    }

    #[test]
    fn what_does_not_hold_is_always_shown() {
        let mut checks = vec![check(true); 30];
        checks.push(check(false));
        let claim = "a claim of so many words that one line of eighty columns cannot hold it all";
        let shown = text(&Proof::of("stall", claim, checks), false);
        assert!(shown.starts_with("FAIL  stall\n      claim     a claim of so many words"));
        assert_eq!(shown.matches("WRONG").count(), 1);
        assert!(shown.contains("and 18 more that hold; `json` has them all"));
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        let skipped = Proof::without("a", "b", Verdict::Skip, "noisy machine".to_owned());
        assert!(text(&skipped, false).starts_with("SKIP  a: noisy machine\n"));
    }

    #[test]
    fn a_line_has_what_does_not_hold_below_it() {
        let about = "open-loop p95, p99 and p99.9 within 5 %";
        let of = |proof: &Proof, ms| line(proof, about, Duration::from_millis(ms), false);
        let mut checks = vec![check(true); 199];
        assert_eq!(
            of(&Proof::of("stall", "", checks.clone()), 1_234),
            "PASS  stall      open-loop p95, p99 and p99.9 within 5 %     199 checks   1.23 s\n"
        );
        checks = vec![check(true), check(false)];
        assert_eq!(
            of(&Proof::of("load-line", "", checks), 98_760),
            "FAIL  load-line  open-loop p95, p99 and p99.9 within 5 %       2 checks   98.8 s
      p99
        truth     902 ms
        measured  903 ms   WRONG\n"
        );
        let skipped = Proof::without("a", "", Verdict::Skip, "noisy machine".to_owned());
        let skipped = of(&Proof { checks: vec![check(true)], ..skipped }, 1_234);
        assert!(skipped.starts_with("SKIP  a ") && skipped.contains("  1 check    1.23 s\n"));
        assert!(skipped.ends_with("\n      noisy machine\n"), "{skipped}");
    }
}
