//! Listing against a model that filters and rolls up the whole key set at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::collection::btree_set;
use proptest::prelude::*;

use super::{Entry, ListQuery, first_text_past};

fn keys(texts: &[&str]) -> BTreeSet<Arc<str>> {
    texts.iter().map(|text| Arc::from(*text)).collect()
}

fn texts(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(Entry::text).collect()
}

/// What a listing means: the keys with the prefix, each cut after its first delimiter, once each.
fn model(keys: &BTreeSet<Arc<str>>, prefix: &str, delimiter: &str, from: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for key in keys.iter().filter(|key| key.starts_with(prefix) && &***key >= from) {
        let tail = &key[prefix.len()..];
        let line = match tail.split_once(delimiter) {
            Some((head, _)) if !delimiter.is_empty() => format!("{prefix}{head}{delimiter}"),
            _ => key.to_string(),
        };
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Few letters, so that prefixes and delimiters are hit often, and the odd ends of UTF-8.
const KEY: &str = "[ab/\u{0}\u{7f}é\u{D7FF}\u{E000}\u{10FFFF}]{1,6}";
const PART: &str = "[ab/é\u{D7FF}\u{10FFFF}]{0,2}";

proptest! {
    #[test]
    fn pages_put_together_are_the_whole_listing(
        keys in btree_set(KEY.prop_map(Arc::<str>::from), 0..40),
        prefix in PART, delimiter in PART, start in KEY, limit in 1_usize..8,
    ) {
        let mut lines = Vec::new();
        let mut from = start.clone();
        loop {
            let query = ListQuery { prefix: &prefix, delimiter: &delimiter, from: &from, limit };
            let page = query.page(&keys);
            prop_assert!(page.entries.len() <= limit);
            lines.extend(page.entries.iter().map(|entry| entry.text().to_owned()));
            let Some(next) = page.next else { break };
            prop_assert_eq!(page.entries.len(), limit, "only a full page has a next one");
            prop_assert!(next > from);
            from = next;
        }
        prop_assert_eq!(lines, model(&keys, &prefix, &delimiter, &start));
    }

    #[test]
    fn nothing_lies_between_a_prefix_and_what_is_past_it(prefix in KEY, key in KEY) {
        if let Some(past) = first_text_past(&prefix) {
            let below = key < past && key >= prefix;
            prop_assert_eq!(below, key.starts_with(&prefix));
        }
    }
}

#[test]
fn a_page_that_ends_exactly_is_the_last() {
    let keys = keys(&["a", "b"]);
    let query = ListQuery { prefix: "", delimiter: "", from: "", limit: 2 };
    let page = query.page(&keys);
    assert_eq!(texts(&page.entries), ["a", "b"]);
    assert_eq!(page.next, None);
}

#[test]
fn a_page_cut_after_a_common_prefix_goes_on_past_it() {
    let keys = keys(&["photos/1", "photos/2", "photos/3", "readme"]);
    let query = ListQuery { prefix: "", delimiter: "/", from: "", limit: 1 };
    let page = query.page(&keys);
    assert_eq!(page.entries, [Entry::CommonPrefix("photos/".to_owned())]);
    // '0' is the character after '/'.
    assert_eq!(page.next.as_deref(), Some("photos0"));
}

#[test]
fn keys_are_in_order_of_utf_8_bytes() {
    // UTF-16 order would put U+10000 (a surrogate pair, D800 DC00) before U+FFFD.
    let keys = keys(&["\u{10000}", "\u{FFFD}", "Z", "a", "é"]);
    let query = ListQuery { prefix: "", delimiter: "", from: "", limit: 9 };
    assert_eq!(texts(&query.page(&keys).entries), ["Z", "a", "é", "\u{FFFD}", "\u{10000}"]);
}

#[test]
fn a_page_of_none_is_empty_and_the_last() {
    let query = ListQuery { prefix: "", delimiter: "", from: "", limit: 0 };
    assert_eq!(query.page(&keys(&["a"])), super::KeyPage::default());
}

#[test]
fn the_greatest_prefix_has_nothing_past_it() {
    assert_eq!(first_text_past("a\u{10FFFF}"), Some("b".to_owned()));
    assert_eq!(first_text_past("\u{10FFFF}"), None);
    assert_eq!(first_text_past("\u{D7FF}"), Some("\u{E000}".to_owned()));
}
