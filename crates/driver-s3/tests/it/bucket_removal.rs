//! Which buckets are removed, and which stay: those that a run created, and those that a workload
//! removes.

use plimsoll_driver::{Admin, CreatedRoot, MissingRoot, RootState};

use crate::admin::{admin, admin_for, head, no_uploads, page, versions};
use crate::common::block_on;
use crate::fake::{Fake, answer, error_xml};

/// Why a bucket stays that was created.
const IN_USE: &str = "somebody else uses it";

/// The answer's body of a bucket with an unfinished upload of `a`.
const UPLOAD: &str = "<ListMultipartUploadsResult><Upload><Key>a</Key><UploadId>u</UploadId>\
                      </Upload></ListMultipartUploadsResult>";

#[test]
fn a_bucket_that_was_created_goes_only_while_nothing_is_in_it() {
    let head_of =
        |server: &str| format!("HTTP/1.1 200 X\r\nServer: {server}\r\nContent-Length: 0\r\n\r\n");
    let left = |missing, answers: Vec<String>| {
        let fake = Fake::answering([vec![head(404), answer(200, "")], answers].concat());
        let mut admin = admin_for(&fake, missing);
        assert_eq!(block_on(admin.ensure_root()), Ok(RootState::Created));
        assert!(admin.has_created());
        let removed = block_on(admin.remove_created());
        let asked = fake.requests();
        let verbs = asked.iter().skip(2).map(|request| request.split(' ').next().unwrap());
        (removed, verbs.collect::<Vec<_>>().join(" "))
    };
    let [none, _] = no_uploads();
    let empty = |last| vec![head_of("MinIO"), none.clone(), page(&[]), versions(&[]), last];
    let stays = |why: &str| Ok(Some(CreatedRoot::Stays(why.to_owned())));
    let (ours, verbs) = left(MissingRoot::Create, empty(head(204)));
    assert_eq!((ours, &*verbs), (Ok(Some(CreatedRoot::Removed)), "HEAD GET GET GET DELETE"));
    let (kept, verbs) = left(MissingRoot::CreateAndKeep, empty(head(204)));
    assert_eq!((kept, &*verbs), (Ok(None), ""));
    // Another run has put its mark there, or begins an upload.
    let marked = vec![head_of("MinIO"), none.clone(), page(&["plimsoll/other.live/x"])];
    assert_eq!(left(MissingRoot::Create, marked), (stays(IN_USE), "HEAD GET GET".to_owned()));
    let begun = vec![head_of("MinIO"), answer(200, UPLOAD)];
    assert_eq!(left(MissingRoot::Create, begun).0, stays(IN_USE));
    // Somebody has deleted an object, and its versions are left.
    let old = vec![head_of("MinIO"), none.clone(), page(&[]), versions(&[("a", "v", None)])];
    assert_eq!(left(MissingRoot::Create, old), (stays(IN_USE), "HEAD GET GET GET".to_owned()));
    // Somebody writes between the look and the removal.
    let full = answer(409, &error_xml("BucketNotEmpty"));
    assert_eq!(left(MissingRoot::Create, empty(full)).0, stays(IN_USE));
    // One whose server would remove what somebody writes meanwhile is not removed at all.
    let (seaweed, verbs) = left(MissingRoot::Create, vec![head_of("SeaweedFS 4.48")]);
    assert_eq!(seaweed, stays("SeaweedFS deletes a bucket with all that is in it"));
    assert_eq!(verbs, "HEAD");
    // Another run has removed it, which is as good.
    assert_eq!(left(MissingRoot::Create, vec![head(404)]).0, Ok(None));
    // One that was there is never removed.
    let fake = Fake::answering(vec![head(200)]);
    let mut admin = admin_for(&fake, MissingRoot::Create);
    assert_eq!(block_on(admin.ensure_root()), Ok(RootState::Existed));
    assert_eq!(block_on(admin.remove_created()), Ok(None));
    assert_eq!(fake.requests().len(), 1);
}

#[test]
fn a_bucket_is_removed_only_while_it_is_empty() {
    let removed = |answers| {
        let fake = Fake::answering(answers);
        let removed = block_on(admin(&fake, None).remove_bucket());
        let asked = fake.requests();
        let verbs = asked.iter().map(|request| request.split(' ').next().unwrap());
        (removed, verbs.collect::<Vec<_>>().join(" "))
    };
    let [none, _] = no_uploads();
    let empty = |last| vec![head(200), none.clone(), page(&[]), versions(&[]), last];
    assert_eq!(removed(vec![head(404)]).0, Ok(false));
    let (gone, verbs) = removed(empty(head(204)));
    assert_eq!((gone, &*verbs), (Ok(true), "HEAD GET GET GET DELETE"));
    // What came in between keeps the bucket.
    let full = answer(409, &error_xml("BucketNotEmpty"));
    let (kept, verbs) = removed(empty(full));
    let error = kept.unwrap_err();
    let told = "bucket `bucket` cannot be removed: BucketNotEmpty";
    assert!(error.message.starts_with(told), "{error}");
    assert_eq!(verbs, "HEAD GET GET GET DELETE");
    // One with anything in it is not touched.
    let (foreign, verbs) = removed(vec![head(200), none.clone(), page(&["a"])]);
    let told = "bucket `bucket` is not removed: it holds other objects, such as `a`";
    assert_eq!((foreign.unwrap_err().message.as_str(), &*verbs), (told, "HEAD GET GET"));
}

#[test]
fn a_bucket_with_versions_or_unfinished_uploads_alone_is_not_removed() {
    // Any request after the look is answered with success, so that it would be seen.
    let removed = |server: &str, listings: &[String]| {
        let head = format!("HTTP/1.1 200 X\r\nServer: {server}\r\nContent-Length: 0\r\n\r\n");
        let fake = Fake::answering([&[head][..], listings, &[answer(204, "")]].concat());
        let removed = block_on(admin(&fake, None).remove_bucket());
        let asked = fake.requests();
        let is_deleted = asked.iter().any(|request| request.starts_with("DELETE /bucket "));
        (removed, is_deleted)
    };
    let [none, _] = no_uploads();
    for server in ["MinIO", "SeaweedFS 4.48"] {
        for (listings, held) in [
            (vec![answer(200, UPLOAD)], "unfinished uploads, such as one of `a`"),
            (
                vec![none.clone(), page(&[]), versions(&[("b", "v1", Some(5))])],
                "old versions or marks of deletion, such as one of `b`",
            ),
            (
                vec![none.clone(), page(&[]), versions(&[("c", "v2", None)])],
                "old versions or marks of deletion, such as one of `c`",
            ),
        ] {
            let (kept, is_deleted) = removed(server, &listings);
            let told = format!("bucket `bucket` is not removed: it holds {held}");
            assert_eq!((kept.unwrap_err().message, is_deleted), (told, false), "{server}");
        }
        let empty = [none.clone(), page(&[]), versions(&[])];
        assert_eq!(removed(server, &empty), (Ok(true), true), "{server}");
    }
    // A store without such listings has no such things, nor one that lists objects instead.
    for unknown in [
        answer(501, &error_xml("NotImplemented")),
        answer(405, &error_xml("MethodNotAllowed")),
        page(&[]),
    ] {
        let listings = [unknown.clone(), page(&[]), unknown];
        assert_eq!(removed("X", &listings), (Ok(true), true));
    }
    // A listing that is denied or fails does not show that the bucket is empty.
    for (status, code) in [(403, "AccessDenied"), (400, "ExpiredToken"), (500, "InternalError")] {
        let refused = || answer(status, &error_xml(code));
        for listings in [vec![refused()], vec![none.clone(), page(&[]), refused()]] {
            let (kept, is_deleted) = removed("X", &listings);
            let error = kept.unwrap_err();
            assert!(error.message.starts_with("bucket `bucket` cannot be read: "), "{error}");
            assert!(!is_deleted);
        }
    }
}
