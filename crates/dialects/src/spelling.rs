//! How alike two words are spelled, for a message that suggests what was meant.

/// Returns the end of a sentence that suggests the word that is spelled most like `name`, if one
/// is at least half like it; of each that is known also what to write for it.
pub(crate) fn did_you_mean(
    name: &str,
    known: impl Iterator<Item = (&'static str, String)>,
) -> String {
    let away = |known: &str| match known.eq_ignore_ascii_case(name) {
        true => 0,
        false => distance(name, known),
    };
    match known.map(|(known, meant)| (away(known), known, meant)).min() {
        Some((distance, _, meant)) if distance * 2 <= name.chars().count() => {
            format!("; did you mean `{meant}`?")
        }
        _ => String::new(),
    }
}

/// Returns how many letters must be put in, taken out or changed to make one word of the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, &r) in right.iter().enumerate() {
            let changed = diagonal + usize::from(l != r);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_put_in_taken_out_or_changed() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
