//! Filling in what a file of `warp run` leaves open: `{{.Name}}`.

use super::error::WarpArgError;

/// Returns the text with every field filled in.
pub(super) fn fill(text: &str, variables: &[(String, String)]) -> Result<String, WarpArgError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once("{{") {
        filled.push_str(before);
        let line = text[..text.len() - opened.len()].lines().count();
        let (action, behind) = opened.split_once("}}").ok_or_else(|| {
            WarpArgError::Form(format!("line {line}: `{{{{` is not closed by `}}}}`"))
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
) -> Result<&'a str, WarpArgError> {
    let name = action.strip_prefix('.').filter(|name| is_name(name)).ok_or_else(|| {
        let written = format!("line {line}: `{{{{{action}}}}}`");
        let word = action.split_whitespace().next().unwrap_or_default();
        let why = format!("`{word}` is more than a field; only `{{{{.Name}}}}` is filled in");
        WarpArgError::NotTaken { written, why }
    })?;
    // Of two the last one counts, as of flags.
    match variables.iter().rfind(|(known, _)| known == name) {
        Some((_, value)) => Ok(value),
        None => {
            let written = format!("line {line}: `{{{{.{name}}}}}`");
            let why = format!("no value is given; add `--var {name}=VALUE`");
            Err(WarpArgError::Value { written, why })
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}
