//! How alike two words are spelled, for a message that suggests what was meant.

/// Returns the one of `names` that is spelled most like `name`, if it is at least half like it.
pub(crate) fn nearest(
    name: &str,
    names: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let (distance, nearest) = names.map(|known| (distance(name, known), known)).min()?;
    (distance * 2 <= name.chars().count()).then_some(nearest)
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
