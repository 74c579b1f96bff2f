//! Answers well-formed and not.

use super::*;
use proptest::prelude::*;

/// The entries, whether there are more, and where they begin.
type Found = (Vec<(String, u64)>, bool, String);

fn entries(xml: &str) -> Result<Found, XmlError> {
    let mut page = ListedPage::default();
    page.parse(Listed::Objects, xml.as_bytes())?;
    let mut found = Vec::new();
    page.for_each(|entry| {
        found.push((entry.key.to_owned(), entry.size));
        true
    })?;
    Ok((found, page.truncated, page.next_token))
}

#[test]
fn a_page_of_a_listing() {
    // The order of Amazon, with what is to be skipped.
    let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>\
        <Prefix>p%2F</Prefix><NextContinuationToken>1&amp;2==</NextContinuationToken>\
        <KeyCount>2</KeyCount><MaxKeys>2</MaxKeys><EncodingType>url</EncodingType>\
        <IsTruncated>true</IsTruncated>\n  <Contents><Key>p/a+b%2B%E2%82%AC</Key>\
        <LastModified>2009-10-12T17:50:30.000Z</LastModified><ETag>&quot;x&quot;</ETag>\
        <Size>434234</Size><Owner><ID>1</ID><Key>no</Key></Owner></Contents>\
        <Contents><Size> 0 </Size><Key>p/%3C</Key></Contents>\
        <CommonPrefixes><Prefix>p/q/</Prefix></CommonPrefixes></ListBucketResult>";
    let (found, truncated, token) = entries(xml).unwrap();
    assert_eq!(found, [("p/a b+€".to_owned(), 434_234), ("p/<".to_owned(), 0)]);
    assert!(truncated);
    assert_eq!(token, "1&2==");
}

#[test]
fn keys_are_decoded_only_where_the_answer_says_so() {
    let key = "a+b%20&#x3c;&lt;<![CDATA[&]]> é";
    let list = |extra| {
        format!(
            "<s3:ListBucketResult><s3:Contents><s3:Key>{key}</s3:Key><s3:Size>1</s3:Size>\
             </s3:Contents>{extra}</s3:ListBucketResult>"
        )
    };
    // The encoding may be stated after the entries (MinIO does so).
    let encoded = entries(&list("<s3:EncodingType>url</s3:EncodingType>")).unwrap();
    assert_eq!(encoded.0[0].0, "a b <<& é");
    assert_eq!(entries(&list("")).unwrap().0[0].0, "a+b%20<<& é");
    assert_eq!(entries("<ListBucketResult/>"), Ok((Vec::new(), false, String::new())));
}

#[test]
fn what_is_no_listing_is_refused_whole() {
    let entry = "<Contents><Key>k</Key><Size>1</Size></Contents>";
    for (xml, why) in [
        ("", "there is no XML"),
        ("no xml at all", "there is no XML"),
        ("<ListBucketResult>", "breaks off"),
        (&format!("<ListBucketResult>{entry}"), "breaks off"),
        (&format!("<ListBucketResult>{entry}</List>"), "List"),
        (
            "<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>",
            "without a size",
        ),
        (
            "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
            "without a key",
        ),
        (
            "<ListBucketResult><Contents><Size>-1</Size></Contents></ListBucketResult>",
            "`-1` is not a size",
        ),
        ("<ListBucketResult>&bomb;</ListBucketResult>", "`&bomb;` is not a known entity"),
        ("<html><body>hello</body></html>", "expected a ListBucketResult but got `html/body`"),
        (&"<a>".repeat(DEPTH_MAX + 1), "nested"),
        ("<ListBucketResult/><ListBucketResult/>", "nested"),
    ] {
        let error = entries(xml).unwrap_err();
        assert!(error.contains(why), "{xml}: {error}");
    }
    let not_utf8 = "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%FF</Key>\
                    <Size>1</Size></Contents></ListBucketResult>";
    assert!(entries(not_utf8).unwrap_err().contains("not UTF-8"));
    let mut page = ListedPage::default();
    assert!(page.parse(Listed::Objects, b"<ListBucketResult>\xff\xfe</ListBucketResult>").is_err());
}

#[test]
fn errors_are_found_in_either_form_and_half_sent() {
    let error = |xml: &str| parse_error(xml.as_bytes());
    let expected = ErrorText {
        code: "NoSuchKey".to_owned(),
        message: "It is <not> there".to_owned(),
        region: String::new(),
    };
    let text = "<Code>NoSuchKey</Code><Message>It is &lt;not&gt; there</Message>";
    for xml in [
        format!("<?xml version=\"1.0\"?>\n<Error>{text}<Key>k</Key></Error>"),
        format!("<ErrorResponse xmlns=\"x\"><Error>{text}</Error></ErrorResponse>"),
        format!("<Error>{text}<RequestId>12"),
    ] {
        assert_eq!(error(&xml), Some(expected.clone()), "{xml}");
    }
    for xml in ["", "<Error></Error>", "<html/>", "<Error><Code>No", "\u{0}\u{1}", "<<<<"] {
        assert_eq!(error(xml), None, "{xml}");
    }
    let inside = "<DeleteResult><Error><Code>X</Code></Error></DeleteResult>";
    assert_eq!(error(inside), None, "the failure of one key is not that of the request");
}

#[test]
fn the_result_of_a_multi_object_delete() {
    assert_eq!(parse_delete_result(b"<DeleteResult/>"), Ok(DeleteFailures::default()));
    let xml = "<DeleteResult><Deleted><Key>a</Key></Deleted>\
        <Error><Key>gone</Key><Code>NoSuchKey</Code><Message>m</Message></Error>\
        <Error><Key>b&amp;c</Key><Code>AccessDenied</Code><Message>No</Message></Error>\
        <Error><Key>d</Key><Code>InternalError</Code><Message>Oh</Message></Error></DeleteResult>";
    let failures = parse_delete_result(xml.as_bytes()).unwrap();
    assert_eq!(failures.count, 2);
    let first = failures.first.unwrap();
    assert_eq!(first.code, "AccessDenied");
    assert_eq!(first.message, "`b&c` was not removed: No");
    for xml in ["", "<DeleteResult><Error>", "<Result/>"] {
        assert!(parse_delete_result(xml.as_bytes()).is_err(), "{xml}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic(bytes in any::<Vec<u8>>()) {
        let _ = ListedPage::default().parse(Listed::Objects, &bytes);
        let _ = parse_delete_result(&bytes);
        let _ = parse_error(&bytes);
    }

    #[test]
    fn no_cut_of_a_listing_passes_for_a_whole_one(cut in 0usize..116) {
        let xml = "<ListBucketResult><IsTruncated>false</IsTruncated>\
            <Contents><Key>k</Key><Size>1</Size></Contents></ListBucketResult>";
        prop_assert_eq!(xml.len(), 116);
        prop_assert!(entries(&xml[..cut]).is_err());
    }
}
