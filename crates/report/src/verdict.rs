//! Who was the limit, as text and as HTML: a sentence, what it rests on, and what would confirm it.

use crate::RunVerdict;
use crate::report::{Report, StageReport};
use crate::stage_words;
use crate::table::{Paint, Tone, harmless, paragraph, toned};

/// What the headline says of a run that its client limited.
pub const NOT_THE_STORE: &str = "not a measurement of the store";

/// Returns what the headline says besides the figures.
pub(crate) fn headline(report: &Report) -> Option<&'static str> {
    report.verdict.as_ref().filter(|verdict| verdict.is_client).map(|_| NOT_THE_STORE)
}

/// Returns the verdict in a sentence.
pub(crate) fn sentence(is_client: bool, sentence: &str) -> String {
    if is_client { format!("{NOT_THE_STORE}: {sentence}") } else { sentence.to_owned() }
}

/// Returns the verdict on a run in one line, for who prints it beside another layout.
pub fn line(report: &Report) -> Option<String> {
    let verdict = report.verdict.as_ref()?;
    Some(format!("{}{}", of_which(report), sentence(verdict.is_client, &verdict.sentence)))
}

/// Returns the stage that the verdict on a run is of: of several alike the last.
pub(crate) fn stage(report: &Report) -> Option<&StageReport> {
    let verdict = report.verdict.as_ref();
    report.stages.iter().rfind(|stage| RunVerdict::of(stage).as_ref() == verdict)
}

/// Returns what that stage is called, in front of the verdict, where there are several results.
pub(crate) fn of_which(report: &Report) -> String {
    let several = report.results().nth(1).and_then(|_| stage(report));
    several.map_or(String::new(), |stage| format!("{}: ", stage_words::name(stage)))
}

/// Returns the first line of the evidence that decided the verdict on a stage.
pub(crate) fn because(stage: &StageReport) -> Option<&str> {
    let mut lines = stage.verdict.iter().flat_map(|verdict| &verdict.evidence);
    lines.find(|line| line.decides).map(|line| &*line.text)
}

/// Writes the verdict on a stage.
pub(crate) fn write(stage: &StageReport, width: usize, paint: Paint, out: &mut String) {
    let Some(verdict) = &stage.verdict else { return };
    let text = sentence(verdict.is_client, &verdict.sentence);
    let tone = if verdict.is_client { Tone::Bad } else { Tone::Plain };
    toned((tone, paint), &format!("{:<12}", "verdict"), &text, width, out);
    for (index, text) in verdict.evidence.iter().map(|line| &*line.text).enumerate() {
        let lead = if index == 0 { "  because" } else { "" };
        paragraph(&format!("{lead:<12}"), &harmless(text), width, out);
    }
    paragraph(&format!("{:<12}", "  to check"), &harmless(&verdict.experiment), width, out);
}

/// Returns the verdict on a stage as names and texts, with all evidence.
pub(crate) fn facts(stage: &StageReport) -> Vec<(&'static str, String)> {
    let Some(verdict) = &stage.verdict else { return Vec::new() };
    let mut facts = vec![("verdict", sentence(verdict.is_client, &verdict.sentence))];
    let mut lead = Some("because");
    for line in verdict.evidence.iter().filter(|line| line.decides) {
        facts.push((lead.take().unwrap_or(""), line.text.clone()));
    }
    facts.push(("to check", verdict.experiment.clone()));
    let mut lead = Some("also known");
    for line in verdict.evidence.iter().filter(|line| !line.decides) {
        facts.push((lead.take().unwrap_or(""), line.text.clone()));
    }
    facts
}

#[cfg(test)]
mod tests {
    use plimsoll_analysis::verdict::{EvidenceLine, LimitClass, Verdict};
    use plimsoll_model::WallTime;

    use super::*;
    use crate::text::{self, Look};
    use crate::{fixture, html, json};

    fn verdict(class: LimitClass) -> Verdict {
        let line = |text: &str, decides| EvidenceLine { text: text.to_owned(), decides };
        Verdict {
            class,
            is_client: class.is_client(),
            sentence: "the client's threads were the limit: each kept one processor busy"
                .to_owned(),
            evidence: vec![
                line("2 of 2 worker threads wanted a processor at least 90 % of the time", true),
                line("32 connections made", false),
            ],
            experiment: "double --threads: if the rate grows, the client was the limit".to_owned(),
        }
    }

    fn judged(class: LimitClass) -> Report {
        let mut stages = fixture::steady().stages;
        let last = stages.last_mut().unwrap();
        last.verdict = Some(verdict(class));
        Report::of("s3 get", WallTime::from_unix_ns(0), stages)
    }

    #[test]
    fn a_run_that_its_client_limited_says_so_first() {
        let report = judged(LimitClass::ClientThreads);
        let text = text::render(&report, &Look { width: 80, color: false });
        let headline = text.split("\n\n").next().unwrap();
        assert!(headline.contains(NOT_THE_STORE), "{text}");
        assert!(
            text.contains("verdict     not a measurement of the store: the client's"),
            "{text}"
        );
        assert!(text.contains("  because   2 of 2 worker threads"), "{text}");
        assert!(text.contains("  to check  double --threads"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let document = json::value(&report);
        assert_eq!(document["verdict"]["class"], "client-threads");
        assert_eq!(document["verdict"]["is_client_limit"], true);
        let page = html::render(&report, &html::Environment::default());
        assert!(page.contains(NOT_THE_STORE) && page.contains("32 connections made"), "{page}");
    }

    #[test]
    fn a_verdict_names_which_of_two_stages_of_one_name_it_is_of() {
        let told = |classes: [LimitClass; 2]| {
            let mut stages = fixture::steady().stages;
            let first = stages.pop().unwrap();
            for (number, class) in (1..).zip(classes) {
                let verdict = Some(verdict(class));
                stages.push(StageReport { number_of_title: number, verdict, ..first.clone() });
            }
            let report = Report::of("s3 get", WallTime::from_unix_ns(0), stages);
            let brief = text::brief(&report, &Look { width: 80, color: false });
            let told = brief.lines().find(|line| line.starts_with("verdict ")).unwrap();
            assert!(line(&report).unwrap().starts_with("measure"), "{brief}");
            told.split_once(": ").unwrap().0.to_owned()
        };
        use LimitClass::{ClientThreads, Store};
        assert_eq!(told([ClientThreads, Store]), "verdict     measure");
        assert_eq!(told([Store, ClientThreads]), "verdict     measure #2");
    }

    #[test]
    fn what_did_not_decide_is_told_with_all_figures() {
        let mut report = judged(LimitClass::ClientThreads);
        report.stages.last_mut().unwrap().cpu_share = Some(0.084);
        let look = Look { width: 80, color: false };
        let text = text::render(&report, &look);
        assert!(text.contains("32 connections made"), "{text}");
        let brief = text::brief(&report, &look);
        assert!(!brief.contains("32 connections made"), "{brief}");
        assert!(brief.contains("verdict     client 8 % busy: the client's"), "{brief}");
        assert!(brief.contains("  try next  double --threads"), "{brief}");
    }

    #[test]
    fn the_stages_that_a_client_limited_come_first() {
        let mut stages = fixture::steady().stages;
        let mut first = stages.pop().unwrap();
        let mut second = first.clone();
        first.verdict = Some(verdict(LimitClass::Recorder));
        second.verdict = Some(verdict(LimitClass::Store));
        let of = |stages| Report::of("run", WallTime::from_unix_ns(0), stages).verdict.unwrap();
        assert_eq!(of(vec![first.clone(), second.clone()]).class, LimitClass::Recorder);
        assert_eq!(of(vec![second.clone(), second.clone()]).class, LimitClass::Store);
        second.is_result = false;
        assert!(Report::of("run", WallTime::from_unix_ns(0), vec![second]).verdict.is_none());
    }
}
