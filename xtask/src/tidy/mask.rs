//! Tells code, comments and literals of a Rust source apart, keeping every line where it is.

/// The two readings of one source; each has the lines and columns of the original.
pub(super) struct Split {
    /// The code, with comments and the insides of literals blanked.
    pub(super) code: String,
    /// The comments, with everything else blanked.
    pub(super) comments: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Literal,
    Comment,
}

/// Splits a source that compiles; on other input the result is merely a guess.
pub(super) fn split(source: &str) -> Split {
    let chars: Vec<char> = source.chars().collect();
    let mut parts = Vec::with_capacity(chars.len());
    while parts.len() < chars.len() {
        let at = parts.len();
        let rest = &chars[at..];
        let after_word = at > 0 && is_word(chars[at - 1]);
        let (part, len) = match rest {
            ['/', '/', ..] => (Part::Comment, until_line_end(rest)),
            ['/', '*', ..] => (Part::Comment, block_comment(rest)),
            ['"', ..] => (Part::Literal, quoted(rest, '"')),
            ['r', '"' | '#', ..] if !after_word => raw_string(rest, 1),
            ['b', 'r', '"' | '#', ..] if !after_word => raw_string(rest, 2),
            ['\'', '\\', ..] | ['\'', _, '\'', ..] => (Part::Literal, quoted(rest, '\'')),
            _ => (Part::Code, 1),
        };
        parts.resize(chars.len().min(at + len.max(1)), part);
    }
    let keep = |wanted: Part| {
        let one = |(&c, &part): (&char, &Part)| if part == wanted || c == '\n' { c } else { ' ' };
        chars.iter().zip(&parts).map(one).collect()
    };
    Split { code: keep(Part::Code), comments: keep(Part::Comment) }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn until_line_end(rest: &[char]) -> usize {
    rest.iter().position(|&c| c == '\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_u32, 0);
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Measures `r#"…"#` behind its prefix of letters; a raw identifier such as `r#fn` is code.
fn raw_string(rest: &[char], prefix: usize) -> (Part, usize) {
    let hashes = rest[prefix..].iter().take_while(|&&c| c == '#').count();
    if rest.get(prefix + hashes) != Some(&'"') {
        return (Part::Code, prefix + hashes);
    }
    let closes = |at: &usize| {
        let tail = &rest[at + 1..];
        rest[*at] == '"' && tail.len() >= hashes && tail[..hashes].iter().all(|&c| c == '#')
    };
    let end = (prefix + hashes + 1..rest.len()).find(closes);
    (Part::Literal, end.map_or(rest.len(), |end| end + 1 + hashes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, code: &str, comments: &str) {
        let split = split(source);
        assert_eq!(split.code, code, "code of {source}");
        assert_eq!(split.comments, comments, "comments of {source}");
    }

    #[test]
    fn comments_and_literals_are_told_from_code() {
        check("a // b\nc", "a     \nc", "  // b\n ");
        check("a /* /* b */ */ c", "a               c", "  /* /* b */ */  ");
        check(r#"f("{ // \" }") ;"#, "f(           ) ;", &" ".repeat(16));
        check(r##"x r#"a"b"# y"##, "x          y", &" ".repeat(12));
        check(r#"br"a\" r#fn"#, "       r#fn", &" ".repeat(11));
        check(r"'{' '\'' <'a>", "         <'a>", &" ".repeat(13));
    }
}
