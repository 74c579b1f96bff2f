//! Holds what we print against what the real programs printed, with masked in both what differs
//! between two runs.

const DAYS_AND_MONTHS: [&str; 19] = [
    "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun",
    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Returns the lines of a text with `#` for numbers, and `*` for days, months and `names`.
///
/// A word that begins with a digit is a number. It keeps its decimals, or the last letter of its
/// unit: `1.25` is `#.##`, `3KiB` and `1.5MiB` are `#B`, and `1.5k` is `#`. Blanks before numbers
/// go, as columns are as wide as their figures. Of equal lines in succession one is kept, as there
/// may be any number of rows.
pub fn masked(text: &str, names: &[&str]) -> Vec<String> {
    let named = names.iter().fold(text.to_owned(), |text, name| text.replace(name, "*"));
    let mut lines: Vec<String> = named.trim_end().lines().map(masked_line).collect();
    lines.dedup();
    lines
}

fn masked_line(line: &str) -> String {
    let mut masked = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let behind = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '.');
        let word = rest[..rest.len() - behind.len()].trim_end_matches('.');
        if first.is_ascii_digit() {
            masked.truncate(masked.trim_end().len());
            masked.push_str(&number(word));
        } else if DAYS_AND_MONTHS.contains(&word) {
            masked.push('*');
        } else if word.is_empty() {
            masked.push(first);
        } else {
            masked.push_str(word);
        }
        rest = &rest[word.len().max(first.len_utf8())..];
    }
    masked
}

fn number(word: &str) -> String {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    match (unit, word.split_once('.')) {
        ("", Some((_, decimals))) if !decimals.contains('.') => {
            format!("#.{}", "#".repeat(decimals.len()))
        }
        // An IP address among them.
        ("" | "k" | "K" | "M" | "G" | "T", _) => "#".to_owned(),
        _ => format!("#{}", unit.chars().last().unwrap_or_default()),
    }
}

/// Refuses a text whose masked lines are not those of the real one.
#[track_caller]
pub fn assert_like(real: &str, ours: &str, names: &[&str]) {
    let (real, masked_ours) = (masked(real, names), masked(ours, names));
    for (at, line) in real.iter().enumerate() {
        assert_eq!(masked_ours.get(at), Some(line), "line {}, of\n{ours}", at + 1);
    }
    assert_eq!(masked_ours.get(real.len()), None, "too much, of\n{ours}");
}

/// Refuses a text with a line that is in none of the real ones, masked.
#[track_caller]
pub fn assert_lines_of(real: &[String], ours: &str, names: &[&str]) {
    let known: Vec<String> = real.iter().flat_map(|text| masked(text, names)).collect();
    for line in masked(ours, names) {
        assert!(known.contains(&line), "no program printed {line:?}, of\n{ours}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_runs_is_masked() {
        let text = "mix: err= 0: pid=12: Fri Nov 20 21:24:56 2026\n  99.5%  12.50 ms, 3KiB of 16. \
                    1m2.5s at http://127.0.0.1:9000, 1.5k\n  1%     2.25 ms\n  2%    13.25 ms\n";
        assert_eq!(
            masked(text, &["mix", "http://127.0.0.1"]),
            ["*: err=#: pid=#: * *##:#:##", "#.#%#.## ms,#B of#.#s at *:#,#", "#%#.## ms"]
        );
    }

    #[test]
    fn another_label_unit_order_or_number_of_decimals_is_refused() {
        let is_like = |ours: &str| {
            std::panic::catch_unwind(|| assert_like("a 1.5 B\nb\n", ours, &[])).is_ok()
        };
        assert!(is_like("a  20.5 B\nb\n"));
        for ours in ["b 1.5 B\nb", "a 1.5 C\nb", "b\na 1.5 B", "a 1.55 B\nb", "a 1 B\nb"] {
            assert!(!is_like(ours), "{ours}");
        }
        assert!(!is_like("a 1.5 B") && !is_like("a 1.5 B\nb\nc"));
        let lines_of = |ours: &str| {
            let real = ["a 1.5 B\nb".to_owned()];
            std::panic::catch_unwind(|| assert_lines_of(&real, ours, &[])).is_ok()
        };
        assert!(lines_of("b\na 2.5 B") && !lines_of("b 1.5 B"));
    }
}
