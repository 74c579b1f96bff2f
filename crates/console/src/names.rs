//! Names that somebody gave, as names of files and as cells of COSBench's tables.

/// More bytes of a name than this are not used.
const BYTES_MAX: usize = 80;

/// Returns a name that is one plain component of a path and one cell of a table, whatever it is
/// made of.
pub(crate) fn safe(name: &str) -> String {
    let fitting = |c: char| match c {
        '/' | '\\' | ',' | ';' | '"' | '\'' | '<' | '>' | '&' | '*' | '?' | '|' | ':' | '$'
        | '`' => '_',
        c if c.is_control() || (c != ' ' && c.is_whitespace()) => '_',
        // What turns the direction of text around, and what is not seen.
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => '_',
        c => c,
    };
    let mut out = String::new();
    for c in name.chars().map(fitting) {
        if out.len() + c.len_utf8() > BYTES_MAX {
            break;
        }
        out.push(c);
    }
    match out.chars().all(|c| c == '.') {
        true => "unnamed".to_owned(),
        false => out.strip_prefix('.').map_or(out.clone(), |rest| format!("_{rest}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_directory_or_its_cell() {
        for (name, expected) in [
            ("demo", "demo"),
            ("../../etc/passwd", "_._.._etc_passwd"),
            ("..", "unnamed"),
            ("", "unnamed"),
            (".hidden", "_hidden"),
            ("a,b\nc", "a_b_c"),
            ("<script>alert(1)</script>", "_script_alert(1)__script_"),
            ("größe 1", "größe 1"),
        ] {
            assert_eq!(safe(name), expected, "{name}");
        }
        assert!(safe(&"ü".repeat(500)).len() <= BYTES_MAX);
    }
}
