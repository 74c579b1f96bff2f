//! The tables of a comparison page; `html::comparison` puts the page together.

use plimsoll_analysis::compare::{Comparison, Difference, KindComparison, Presence, Verdict};

use super::figure::{figure, percent_signed, percent_spread};
use super::headline::headline;
use super::{
    NO_VERDICT, OPEN_ON_ONE_SIDE, change_text, is_shown, label, place_name, too_few_runs,
    verdict_text, warnings, word,
};
use crate::format::{UNKNOWN, known};
use crate::html::{CELL_CHARS_MAX, TEXT_CHARS_MAX, cut, cut_name, escaped, sentence};
use crate::table::Tone;

/// Returns what the comparison comes to, and the runs of each side.
pub(crate) fn head(comparison: &Comparison) -> String {
    let headline = headline(comparison);
    let lines = headline.iter().map(|line| format!("<li>{}</li>\n", escaped(line)));
    let warnings = warnings(comparison).into_iter();
    let warnings = warnings.map(|text| format!("<li class=\"warning\">{}</li>\n", sentence(&text)));
    let lines: String = lines.chain(warnings).collect();
    let side = |name: &str, runs: &[String]| {
        format!("<dt>{name}</dt><dd>{}</dd>\n", cut(&runs.join(", "), TEXT_CHARS_MAX))
    };
    format!(
        "<ul id=\"warnings\">\n{lines}</ul>\n<section id=\"runs\">\n<h2>The runs</h2>\n<dl>\n{}{}\
         </dl>\n</section>\n",
        side("before", &comparison.before),
        side("after", &comparison.after)
    )
}

/// Returns what a kind is called in the heading of its section.
pub(crate) fn title(kind: &KindComparison) -> String {
    place_name(kind.of.as_deref(), kind.kind)
}

/// Returns the table of a kind: each metric with its change, its interval and its verdict.
pub(crate) fn table(kind: &KindComparison) -> String {
    let mut rows = String::new();
    let mut group = None;
    for row in kind.rows.iter().filter(|row| is_shown(row, kind)) {
        let (of, name) = label(row.metric);
        if of.is_some() && of != group {
            let of = of.unwrap_or_default();
            rows += &format!("<tr><th scope=\"row\">{of}</th><td colspan=\"4\"></td></tr>\n");
        }
        group = of;
        let class = if of.is_some() || name.starts_with(' ') { " class=\"part\"" } else { "" };
        let side = |mean| known(mean, |value| figure(row.metric.unit(), value));
        let change = match row.verdict {
            Verdict::OneRun { change_percent: Some(noise), .. } => {
                let [low, high] = [noise.low, noise.high].map(percent_signed);
                format!("{} ({low} to {high})", known(row.percent, percent_signed))
            }
            _ => change_text(row),
        };
        let (_, tone) = word(&row.verdict);
        let tone = match tone {
            Tone::Bad => " class=\"bad\"",
            Tone::Good => " class=\"good\"",
            _ => "",
        };
        rows += &format!(
            "<tr{class}><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td>\
             <td{tone}>{}</td></tr>\n",
            escaped(name.trim()),
            escaped(&side(row.before.mean)),
            escaped(&side(row.after.mean)),
            escaped(&change),
            escaped(&verdict_text(&row.verdict))
        );
    }
    format!(
        "<div class=\"table\"><table>\n<thead><tr><th></th><th>before</th><th>after</th>\
         <th>change, %</th><th>verdict</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

/// Returns what to make of the tables, and what there is nothing to compare with.
pub(crate) fn notes(comparison: &Comparison) -> String {
    let rows = || comparison.kinds.iter().flat_map(|kind| &kind.rows);
    let mut notes = Vec::new();
    if rows().any(|row| matches!(row.verdict, Verdict::OneRun { .. })) {
        notes.push(format!(
            "{NO_VERDICT}; in brackets where the change lies with 95 %, by what varies within the \
             two runs. Runs vary more among themselves: 3 runs a side give a verdict"
        ));
    }
    if rows().any(|row| matches!(row.verdict, Verdict::TooFewRuns)) {
        notes.push(too_few_runs(comparison).to_owned());
    }
    if rows().any(|row| row.verdict.evidence().is_some()) {
        let margin = percent_spread(comparison.margin.percent());
        notes.push(format!(
            "before and after are means of the runs; the change with its 95 % interval; better, \
             worse: the interval holds no 0; same: all of it lies within ± {margin} %; unclear: \
             neither"
        ));
    }
    for (presence, side) in [(Presence::BeforeOnly, "before"), (Presence::AfterOnly, "after")] {
        let kinds = comparison.kinds.iter().filter(|kind| kind.presence == presence);
        let names: Vec<String> = kinds.map(title).collect();
        if !names.is_empty() {
            notes.push(format!("only {side}: {}", names.join(", ")));
        }
    }
    notes.iter().map(|note| format!("<p class=\"caption\">{}</p>\n", escaped(note))).collect()
}

/// Returns the parameters that differ.
pub(crate) fn parameters(comparison: &Comparison, differences: &[Difference]) -> String {
    if differences.is_empty() {
        return "<p>The same, as far as they are known.</p>\n".to_owned();
    }
    let cell = |values: &[String]| match values.is_empty() {
        true => UNKNOWN.to_owned(),
        false => cut(&values.join(", "), CELL_CHARS_MAX),
    };
    let row = |Difference { name, before, after }: &Difference| {
        let (name, before, after) = (cut_name(name, CELL_CHARS_MAX), cell(before), cell(after));
        format!("<tr><th scope=\"row\">{name}</th><td>{before}</td><td>{after}</td></tr>\n")
    };
    let rows: String = differences.iter().map(row).collect();
    let mut html = format!(
        "<div class=\"table\"><table>\n<thead><tr><th></th><th>before</th><th>after</th></tr></thead>\
         \n<tbody>\n{rows}</tbody>\n</table></div>\n"
    );
    if comparison.is_open_on_one_side {
        html += &format!("<p class=\"bad\">{OPEN_ON_ONE_SIDE}</p>\n");
    }
    html
}
