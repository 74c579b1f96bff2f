//! Filling in what a file of `warp run` leaves open: `{{.Name}}`.

use crate::command_line::LineError;

/// Returns the text with every field filled in.
pub(super) fn fill(text: &str, variables: &[(String, String)]) -> Result<String, LineError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once("{{") {
        filled.push_str(before);
        let line = text[..text.len() - opened.len()].lines().count();
        let (action, behind) = opened.split_once("}}").ok_or_else(|| {
            LineError::form(format!("line {line}: `{{{{` is not closed by `}}}}`"))
        })?;
        filled.push_str(value(action.trim(), variables, line)?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn value<'a>(
    action: &str,
    variables: &'a [(String, String)],
    line: usize,
) -> Result<&'a str, LineError> {
    let name = action.strip_prefix('.').filter(|name| is_name(name)).ok_or_else(|| {
        let word = action.split_whitespace().next().unwrap_or_default();
        let why = format!("`{word}` is more than a field; only `{{{{.Name}}}}` is filled in");
        LineError::not_taken(format!("line {line}: `{{{{{action}}}}}`"), why)
    })?;
    // Of two the last one counts, as of flags.
    match variables.iter().rfind(|(known, _)| known == name) {
        Some((_, value)) => Ok(value),
        None => {
            let why = format!("no value is given; add `--var {name}=VALUE`");
            Err(LineError::value(format!("line {line}: `{{{{.{name}}}}}`"), why))
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}
