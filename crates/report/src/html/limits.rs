//! How much of a record a page shows, so that it stays small however large the record is: what
//! matters least is left out first, in steps, until the page is small enough.

use plimsoll_analysis::Figures;

use super::escaped;
use crate::format::count;
use crate::report::StageReport;
use crate::table::elided;

/// How much is shown of a name in a legend, of a cell of a table, of a sentence, and of a command.
pub(super) const NAME_CHARS_MAX: usize = 80;
pub(crate) const CELL_CHARS_MAX: usize = 160;
pub(crate) const TEXT_CHARS_MAX: usize = 1_000;
pub(super) const COMMAND_CHARS_MAX: usize = 4_000;
/// How many sentences or named texts stand below each other.
pub(super) const LINES_MAX: usize = 60;
/// How many rows a table has.
pub(super) const ROWS_MAX: usize = 300;

/// Which charts a stage has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Drawn {
    Nothing,
    /// The first one.
    First,
    /// Those of rates, latency and failures over time.
    Main,
    All,
}

/// How much a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) drawn: Drawn,
    /// Hosts, clients or agents of a table.
    pub(super) hosts: usize,
    /// Rows of a stage.
    pub(super) rows: usize,
    pub(super) stages: usize,
}

impl Limits {
    /// What is shown of nearly every record.
    pub(super) const USUAL: Self =
        Self { drawn: Drawn::All, hosts: 64, rows: usize::MAX, stages: usize::MAX };

    /// Returns the steps from the usual limits down to the lowest.
    pub(super) fn steps() -> impl Iterator<Item = Self> {
        let charts = [Drawn::Main, Drawn::First, Drawn::Nothing];
        let charts = charts.map(|drawn| Self { drawn, hosts: 24, ..Self::USUAL });
        let few = [64, 32, 16, 8, 4, 2, 1];
        let few = few.map(|stages| Self { drawn: Drawn::Nothing, hosts: 8, rows: 8, stages });
        std::iter::once(Self::USUAL).chain(charts).chain(few)
    }

    /// Returns what is left out of a page for these, for a remark; `None` of the usual ones.
    pub(super) fn told(self) -> Option<&'static str> {
        match self.drawn {
            Drawn::All => None,
            Drawn::Main => {
                Some("the charts of each stage but those of rates, latency and failures")
            }
            Drawn::First => Some("the charts of each stage but the first"),
            Drawn::Nothing if self.stages == usize::MAX => Some("the charts of each stage"),
            Drawn::Nothing => Some("the charts of each stage, and some of the stages"),
        }
    }

    /// Returns which stages are shown, in their order: results before others, with failures before
    /// those without, the longest first.
    pub(super) fn stages_of<'a>(
        self,
        stages: &[(usize, &'a StageReport)],
    ) -> Vec<(usize, &'a StageReport)> {
        chosen(stages, self.stages, |(_, stage)| {
            (stage.is_result, stage.failed_count() > 0, stage.took)
        })
        .into_iter()
        .copied()
        .collect()
    }

    /// Returns which of many hosts or clients are shown, in their order: one half are the slowest,
    /// the other those with the most failures.
    pub(super) fn of_many<T>(self, all: &[T], figures: impl Fn(&T) -> &Figures) -> Vec<&T> {
        if all.len() <= self.hosts {
            return all.iter().collect();
        }
        let failed = |at: &usize| figures(&all[*at]).stage.failed.count();
        let rate = |at: &usize| figures(&all[*at]).rates.map_or(0.0, |rates| rates.ops.0);
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(failed(at)));
        let split = order.iter().take(self.hosts / 2).filter(|at| failed(at) > 0).count();
        order[split..].sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        order.truncate(self.hosts);
        order.sort_unstable();
        order.into_iter().map(|at| &all[at]).collect()
    }
}

/// Returns the `most` of all that come first by a key, the largest first, in the order of all.
pub(super) fn chosen<T, K: Ord>(all: &[T], most: usize, key: impl Fn(&T) -> K) -> Vec<&T> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(key(&all[*at])));
    order.truncate(most);
    order.sort_unstable();
    order.into_iter().map(|at| &all[at]).collect()
}

/// Says how many more there are.
pub(super) fn more(left_out: usize) -> String {
    format!("and {} more (in the JSON report)", count(left_out as u64))
}

/// Returns a text as HTML: its beginning, where it is longer than so many characters, or where it
/// would take more than twice as many bytes.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    let mut html = String::new();
    for (at, c) in text.chars().enumerate() {
        let of_char = escaped(c.encode_utf8(&mut [0; 4]));
        if at >= chars_max || html.len() + of_char.len() > 2 * chars_max {
            return html + "…";
        }
        html += &of_char;
    }
    html
}

/// Returns a sentence as HTML, cut as other texts are, with what it quotes in backticks as code.
pub(crate) fn sentence(text: &str) -> String {
    /// So many quotes of a sentence are made code: the markup must not make a page large.
    const QUOTES_MAX: usize = 4;
    let mut html = String::new();
    let cut = cut(text, TEXT_CHARS_MAX);
    let mut rest = &*cut;
    for _ in 0..QUOTES_MAX {
        let Some((before, behind)) = rest.split_once('`') else { break };
        let Some((quoted, behind)) = behind.split_once('`') else { break };
        html += &format!("{before}<code>{quoted}</code>");
        rest = behind;
    }
    html + rest
}

/// Returns a name as HTML, cut in its middle, as names begin and end differently.
pub(crate) fn cut_name(name: &str, chars_max: usize) -> String {
    cut(&elided(name, chars_max), chars_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_their_length_and_by_what_they_take() {
        assert_eq!(cut("a<b", 10), "a&lt;b");
        assert_eq!(cut("abcdef", 4), "abcd…");
        assert_eq!(cut("abcd", 4), "abcd");
        // A quote takes six bytes.
        let quotes = "\"".repeat(1_000);
        assert_eq!(cut(&quotes, 30), "&quot;".repeat(10) + "…");
        assert_eq!(cut_name("http://store-0001.example.com", 12), "http:…le.com");
    }

    #[test]
    fn what_a_sentence_quotes_is_code() {
        for (text, html) in [
            ("a machine (`--fleet`)", "a machine (<code>--fleet</code>)"),
            ("`a` and `<b>`", "<code>a</code> and <code>&lt;b&gt;</code>"),
            ("one ` alone", "one ` alone"),
            ("``", "<code></code>"),
            ("", ""),
        ] {
            assert_eq!(sentence(text), html);
        }
        let many = sentence(&"`a` ".repeat(100));
        assert_eq!((many.matches("<code>").count(), many.matches('`').count()), (4, 192));
    }

    #[test]
    fn the_steps_only_go_down() {
        let steps: Vec<Limits> = Limits::steps().collect();
        assert_eq!(steps[0], Limits::USUAL);
        for two in steps.windows(2) {
            assert!(two[1].drawn <= two[0].drawn && two[1].hosts <= two[0].hosts);
            assert!(two[1].rows <= two[0].rows && two[1].stages <= two[0].stages);
            assert!(two[1] != two[0] && two[1].told().is_some());
        }
    }

    #[test]
    fn what_comes_first_by_its_key_stays_in_its_place() {
        assert_eq!(chosen(&[3, 9, 1, 7], 2, |value| *value), [&9, &7]);
        assert_eq!(chosen(&[3, 9], 5, |value| *value), [&3, &9]);
    }
}
