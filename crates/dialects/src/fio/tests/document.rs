//! The document that lists every option says what the code does.

use super::options::{self, Deal};

#[test]
fn the_document_has_every_option_and_its_deal() {
    let document = include_str!("../../../../../docs/coming-from-fio.md");
    let mut missing = Vec::new();
    for known in options::all() {
        let (deal, what) = match &known.deal {
            Deal::Take(_) => ("taken", None),
            Deal::Note { what, .. } => ("noted", Some(*what)),
            Deal::Refuse { why, .. } => ("refused", Some(*why)),
        };
        for name in [known.name].iter().chain(known.aliases) {
            let is_row = |line: &str| {
                let cells: Vec<&str> = line.split('|').map(str::trim).collect();
                cells.len() == 5
                    && cells[1].contains(&format!("`{name}`"))
                    && cells[2] == deal
                    && what.is_none_or(|what| cells[3] == what)
            };
            if !document.lines().any(is_row) {
                missing.push(format!("{name}: {deal} {}", what.unwrap_or_default()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
