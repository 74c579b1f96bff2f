"""What boto3 asks of the embedded store, call by call, each with its expected outcome.

    python3 boto3_calls.py http://HOST:PORT ACCESS_KEY SECRET_KEY

An outcome is `works`, or the code of the error. What the store does not offer is refused as
`NotImplemented` by a message that says what. Prints one line for each call; ends with 1 when one of
them came out otherwise.
"""

import datetime
import hashlib
import io
import sys
import threading
import urllib.error
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError, WaiterError

ENDPOINT, ACCESS_KEY, SECRET_KEY = sys.argv[1:4]
MIB = 1 << 20
PARTS = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)


def client(**more):
    retries = {"total_max_attempts": 1}
    return boto3.client(
        "s3",
        endpoint_url=ENDPOINT,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
        config=Config(retries=retries, s3={"addressing_style": "path"}, **more),
    )


s3 = client()
calls = []


def expect(outcome):
    """Notes a call and what is to come of it."""

    def note(call):
        calls.append((call, outcome))
        return call

    return note


def pattern(size, seed=7):
    return (bytes((i * seed + 3) % 251 for i in range(251)) * (size // 251 + 1))[:size]


def body(**key):
    return s3.get_object(Bucket="calls", **key)["Body"].read()


def in_a_year():
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=365)


# Buckets.


@expect("works")
def create_bucket():
    s3.create_bucket(Bucket="calls")
    s3.get_waiter("bucket_exists").wait(Bucket="calls")


@expect("BucketAlreadyOwnedByYou")
def create_bucket_again():
    s3.create_bucket(Bucket="calls")


@expect("works")
def head_and_list_buckets():
    assert s3.head_bucket(Bucket="calls")["BucketRegion"] == "us-east-1"
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["calls"]
    assert s3.get_bucket_location(Bucket="calls")["LocationConstraint"] is None


@expect("NoSuchBucket")
def list_no_bucket():
    s3.list_objects_v2(Bucket="nowhere")


@expect("404")
def head_no_bucket():
    s3.head_bucket(Bucket="nowhere")


@expect("works")
def bucket_tags():
    tags = [{"Key": "team", "Value": "storage & more"}]
    s3.put_bucket_tagging(Bucket="calls", Tagging={"TagSet": tags})
    assert s3.get_bucket_tagging(Bucket="calls")["TagSet"] == tags
    s3.delete_bucket_tagging(Bucket="calls")


@expect("NoSuchTagSet")
def bucket_without_tags():
    s3.get_bucket_tagging(Bucket="calls")


@expect("works")
def bucket_acl_is_the_owners():
    assert s3.get_bucket_acl(Bucket="calls")["Grants"][0]["Permission"] == "FULL_CONTROL"


@expect("NotImplemented")
def bucket_acl_cannot_be_changed():
    s3.put_bucket_acl(Bucket="calls", ACL="public-read")


@expect("NoSuchBucketPolicy")
def bucket_has_no_policy():
    s3.get_bucket_policy(Bucket="calls")


@expect("NotImplemented")
def bucket_policy():
    s3.put_bucket_policy(Bucket="calls", Policy="{}")


@expect("NotImplemented")
def lifecycle():
    rule = {"ID": "r", "Status": "Enabled", "Prefix": "", "Expiration": {"Days": 1}}
    s3.put_bucket_lifecycle_configuration(
        Bucket="calls", LifecycleConfiguration={"Rules": [rule]}
    )


@expect("NoSuchLifecycleConfiguration")
def bucket_has_no_lifecycle():
    s3.get_bucket_lifecycle_configuration(Bucket="calls")


@expect("NotImplemented")
def website():
    s3.put_bucket_website(
        Bucket="calls", WebsiteConfiguration={"IndexDocument": {"Suffix": "index.html"}}
    )


@expect("NotImplemented")
def inventory():
    s3.list_bucket_inventory_configurations(Bucket="calls")


# Objects.


@expect("works")
def put_and_get_object():
    s3.put_object(
        Bucket="calls",
        Key="a/object",
        Body=b"0123456789",
        ContentType="text/x-digits",
        CacheControl="max-age=60",
        ContentDisposition='attachment; filename="d"',
        ContentEncoding="identity",
        ContentLanguage="en",
        Metadata={"ship": "plimsoll"},
        Tagging="kind=digits",
    )
    got = s3.get_object(Bucket="calls", Key="a/object")
    assert got["Body"].read() == b"0123456789"
    assert got["ContentType"] == "text/x-digits" and got["CacheControl"] == "max-age=60"
    assert got["ContentEncoding"] == "identity" and got["ContentLanguage"] == "en"
    assert got["ContentDisposition"] == 'attachment; filename="d"'
    assert got["Metadata"] == {"ship": "plimsoll"} and got["TagCount"] == 1
    assert got["AcceptRanges"] == "bytes" and got["ContentLength"] == 10


@expect("works")
def head_object():
    s3.get_waiter("object_exists").wait(Bucket="calls", Key="a/object")
    head = s3.head_object(Bucket="calls", Key="a/object")
    assert head["ContentLength"] == 10 and head["Metadata"] == {"ship": "plimsoll"}
    part = s3.head_object(Bucket="calls", Key="a/object", Range="bytes=2-4")
    assert part["ContentLength"] == 3 and part["ContentRange"] == "bytes 2-4/10"


@expect("works")
def keys_of_any_letters():
    for key in ["b & c/d+e f", "é/日本/😀", "%41?#[]{}|\\^`\"<>", ".", "a//b"]:
        s3.put_object(Bucket="calls", Key="odd/" + key, Body=key.encode())
        assert body(Key="odd/" + key) == key.encode(), key
    listed = s3.list_objects_v2(Bucket="calls", Prefix="odd/")
    assert listed["KeyCount"] == 5


@expect("NoSuchKey")
def get_no_key():
    s3.get_object(Bucket="calls", Key="nothing")


@expect("404")
def head_no_key():
    s3.head_object(Bucket="calls", Key="nothing")


@expect("works")
def ranges():
    assert body(Key="a/object", Range="bytes=2-4") == b"234"
    assert body(Key="a/object", Range="bytes=-3") == b"789"
    got = s3.get_object(Bucket="calls", Key="a/object", Range="bytes=8-99")
    assert got["ContentRange"] == "bytes 8-9/10"


@expect("InvalidRange")
def range_beyond_the_end():
    s3.get_object(Bucket="calls", Key="a/object", Range="bytes=10-11")


@expect("works")
def answers_as_asked():
    got = s3.get_object(
        Bucket="calls", Key="a/object", ResponseContentType="x/y", ResponseCacheControl="no-store"
    )
    assert got["ContentType"] == "x/y" and got["CacheControl"] == "no-store"


@expect("works")
def conditions_that_hold():
    head = s3.head_object(Bucket="calls", Key="a/object")
    early, late = head["LastModified"] - datetime.timedelta(days=1), head["LastModified"]
    assert body(Key="a/object", IfMatch=head["ETag"]) == b"0123456789"
    assert body(Key="a/object", IfNoneMatch='"other"') == b"0123456789"
    assert body(Key="a/object", IfModifiedSince=early) == b"0123456789"
    assert body(Key="a/object", IfUnmodifiedSince=late) == b"0123456789"
    # If-Match goes before If-Unmodified-Since.
    assert body(Key="a/object", IfMatch=head["ETag"], IfUnmodifiedSince=early) == b"0123456789"


@expect("PreconditionFailed")
def if_match_of_another():
    s3.get_object(Bucket="calls", Key="a/object", IfMatch='"other"')


@expect("PreconditionFailed")
def if_unmodified_since_long_ago():
    early = datetime.datetime(2001, 1, 1)
    s3.get_object(Bucket="calls", Key="a/object", IfUnmodifiedSince=early)


@expect("304")
def if_none_match_of_the_same():
    etag = s3.head_object(Bucket="calls", Key="a/object")["ETag"]
    s3.get_object(Bucket="calls", Key="a/object", IfNoneMatch=etag)


@expect("304")
def if_modified_since_now():
    modified = s3.head_object(Bucket="calls", Key="a/object")["LastModified"]
    s3.head_object(Bucket="calls", Key="a/object", IfModifiedSince=modified)


@expect("works")
def conditional_writes():
    first = s3.put_object(Bucket="calls", Key="cond", Body=b"1", IfNoneMatch="*")
    second = s3.put_object(Bucket="calls", Key="cond", Body=b"2", IfMatch=first["ETag"])
    assert second["ETag"] != first["ETag"] and body(Key="cond") == b"2"


@expect("PreconditionFailed")
def put_where_something_is():
    s3.put_object(Bucket="calls", Key="cond", Body=b"3", IfNoneMatch="*")


@expect("PreconditionFailed")
def put_in_the_place_of_another():
    s3.put_object(Bucket="calls", Key="cond", Body=b"3", IfMatch='"other"')


@expect("NoSuchKey")
def put_in_the_place_of_nothing():
    s3.put_object(Bucket="calls", Key="nothing", Body=b"3", IfMatch='"other"')


@expect("works")
def of_many_conditional_writers_one_wins():
    outcomes = []

    def write(text):
        try:
            client().put_object(Bucket="calls", Key="race", Body=text, IfNoneMatch="*")
            outcomes.append("won")
        except ClientError as error:
            outcomes.append(error.response["Error"]["Code"])

    threads = [threading.Thread(target=write, args=(b"%d" % i,)) for i in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(outcomes) == ["PreconditionFailed"] * 5 + ["won"], outcomes


@expect("NotImplemented")
def acl_of_an_object():
    s3.put_object(Bucket="calls", Key="public", Body=b"", ACL="public-read")


@expect("works")
def storage_class():
    s3.put_object(Bucket="calls", Key="cold", Body=b"c", StorageClass="STANDARD_IA")
    assert s3.head_object(Bucket="calls", Key="cold")["StorageClass"] == "STANDARD_IA"


# Checksums.


@expect("works")
def checksums_of_every_kind():
    for algorithm in ["CRC32", "SHA1", "SHA256"]:
        put = s3.put_object(
            Bucket="calls", Key="sum", Body=b"plimsoll", ChecksumAlgorithm=algorithm
        )
        head = s3.head_object(Bucket="calls", Key="sum", ChecksumMode="ENABLED")
        name = "Checksum" + algorithm
        assert put[name] == head[name] and head["ChecksumType"] == "FULL_OBJECT", algorithm
        assert body(Key="sum", ChecksumMode="ENABLED") == b"plimsoll"
    # The check values of CRC-32C and CRC-64/NVME over 123456789.
    for name, value in [("ChecksumCRC32C", "4waSgw=="), ("ChecksumCRC64NVME", "rosUhgp5mIg=")]:
        s3.put_object(Bucket="calls", Key="sum", Body=b"123456789", **{name: value})
        assert s3.head_object(Bucket="calls", Key="sum", ChecksumMode="ENABLED")[name] == value


@expect("BadDigest")
def checksum_of_another():
    s3.put_object(Bucket="calls", Key="sum", Body=b"plimsoll", ChecksumCRC32C="AAAAAA==")


@expect("works")
def object_attributes():
    names = ["ETag", "Checksum", "ObjectSize", "StorageClass", "ObjectParts"]
    s3.put_object(Bucket="calls", Key="sum", Body=b"123456789", ChecksumAlgorithm="CRC32")
    told = s3.get_object_attributes(Bucket="calls", Key="sum", ObjectAttributes=names)
    assert told["ObjectSize"] == 9 and told["Checksum"]["ChecksumCRC32"] == "y/Q5Jg=="
    assert told["StorageClass"] == "STANDARD" and "ObjectParts" not in told


# Transfers.


@expect("works")
def upload_and_download_fileobj():
    content = pattern(300_000)
    s3.upload_fileobj(io.BytesIO(content), "calls", "file", ExtraArgs={"Metadata": {"n": "v"}})
    out = io.BytesIO()
    s3.download_fileobj("calls", "file", out)
    assert out.getvalue() == content


@expect("works")
def upload_and_download_fileobj_in_parts():
    content = pattern(12 * MIB + 5)
    s3.upload_fileobj(io.BytesIO(content), "calls", "parts", Config=PARTS)
    out = io.BytesIO()
    s3.download_fileobj("calls", "parts", out, Config=PARTS)
    assert hashlib.sha256(out.getvalue()).digest() == hashlib.sha256(content).digest()
    part = s3.get_object(Bucket="calls", Key="parts", PartNumber=3)
    assert part["PartsCount"] == 3 and part["ContentLength"] == 2 * MIB + 5
    assert s3.head_object(Bucket="calls", Key="parts", PartNumber=1)["ContentLength"] == 5 * MIB
    told = s3.get_object_attributes(Bucket="calls", Key="parts", ObjectAttributes=["ObjectParts"])
    assert told["ObjectParts"]["TotalPartsCount"] == 3


@expect("works")
def multipart_by_hand():
    key = {"Bucket": "calls", "Key": "by hand"}
    upload = s3.create_multipart_upload(**key, ChecksumAlgorithm="SHA256", Tagging="t=u")
    named = {**key, "UploadId": upload["UploadId"]}
    parts = []
    # Out of order, as a client of many connections sends them.
    for number, content in [(2, b"tail"), (1, pattern(5 * MIB))]:
        part = s3.upload_part(
            **named, PartNumber=number, Body=content, ChecksumAlgorithm="SHA256"
        )
        fields = {name: part[name] for name in ["ETag", "ChecksumSHA256"]}
        parts.append({"PartNumber": number, **fields})
    listed = s3.list_parts(**named)["Parts"]
    assert [part["PartNumber"] for part in listed] == [1, 2] and "ChecksumSHA256" in listed[0]
    uploads = s3.list_multipart_uploads(Bucket="calls")["Uploads"]
    assert [upload["Key"] for upload in uploads] == ["by hand"]
    parts.sort(key=lambda part: part["PartNumber"])
    done = s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    assert done["ChecksumSHA256"].endswith("-2") and done["ChecksumType"] == "COMPOSITE"
    assert body(Key="by hand") == pattern(5 * MIB) + b"tail"
    assert s3.get_object_tagging(**key)["TagSet"] == [{"Key": "t", "Value": "u"}]


@expect("PreconditionFailed")
def complete_where_something_is():
    key = {"Bucket": "calls", "Key": "by hand"}
    named = {**key, "UploadId": s3.create_multipart_upload(**key)["UploadId"]}
    part = s3.upload_part(**named, PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    try:
        s3.complete_multipart_upload(**named, MultipartUpload=parts, IfNoneMatch="*")
    finally:
        s3.abort_multipart_upload(**named)


@expect("NoSuchUpload")
def abort_no_upload():
    s3.abort_multipart_upload(Bucket="calls", Key="k", UploadId="none")


@expect("EntityTooSmall")
def parts_too_small():
    key = {"Bucket": "calls", "Key": "small"}
    named = {**key, "UploadId": s3.create_multipart_upload(**key)["UploadId"]}
    tags = [s3.upload_part(**named, PartNumber=n, Body=b"x")["ETag"] for n in (1, 2)]
    parts = [{"PartNumber": n, "ETag": tag} for n, tag in zip((1, 2), tags)]
    try:
        s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    finally:
        s3.abort_multipart_upload(**named)


# Copies.


@expect("works")
def copy_object():
    source = {"Bucket": "calls", "Key": "a/object"}
    s3.copy_object(Bucket="calls", Key="copy é", CopySource=source)
    head = s3.head_object(Bucket="calls", Key="copy é")
    assert head["Metadata"] == {"ship": "plimsoll"} and head["ContentType"] == "text/x-digits"
    assert s3.get_object_tagging(Bucket="calls", Key="copy é")["TagSet"][0]["Key"] == "kind"
    s3.copy_object(
        Bucket="calls",
        Key="copy é",
        CopySource=source,
        MetadataDirective="REPLACE",
        Metadata={"new": "1"},
        TaggingDirective="REPLACE",
    )
    assert s3.head_object(Bucket="calls", Key="copy é")["Metadata"] == {"new": "1"}
    assert s3.get_object_tagging(Bucket="calls", Key="copy é")["TagSet"] == []


@expect("InvalidRequest")
def copy_onto_itself():
    s3.copy_object(Bucket="calls", Key="cond", CopySource={"Bucket": "calls", "Key": "cond"})


@expect("works")
def copy_onto_itself_with_other_metadata():
    source = {"Bucket": "calls", "Key": "cond"}
    s3.copy_object(**source, CopySource=source, MetadataDirective="REPLACE", Metadata={"m": "n"})
    assert s3.head_object(**source)["Metadata"] == {"m": "n"} and body(Key="cond") == b"2"


@expect("PreconditionFailed")
def copy_of_another():
    source = {"Bucket": "calls", "Key": "cond"}
    s3.copy_object(Bucket="calls", Key="c", CopySource=source, CopySourceIfMatch='"other"')


@expect("NoSuchKey")
def copy_of_nothing():
    s3.copy_object(Bucket="calls", Key="c", CopySource={"Bucket": "calls", "Key": "nothing"})


@expect("works")
def copy_in_parts():
    source = {"Bucket": "calls", "Key": "parts"}
    s3.copy(source, "calls", "parts again", Config=PARTS)
    assert body(Key="parts again") == body(Key="parts")


# Listings.


@expect("works")
def list_with_delimiter():
    for key in ["l/1", "l/2", "l/m/1", "l/m/2", "l/n/1"]:
        s3.put_object(Bucket="calls", Key=key, Body=key.encode())
    for listing in (s3.list_objects_v2, s3.list_objects):
        page = listing(Bucket="calls", Prefix="l/", Delimiter="/")
        assert [o["Key"] for o in page["Contents"]] == ["l/1", "l/2"]
        assert [p["Prefix"] for p in page["CommonPrefixes"]] == ["l/m/", "l/n/"]
    after = s3.list_objects_v2(Bucket="calls", Prefix="l/", StartAfter="l/m/1", FetchOwner=True)
    assert [o["Key"] for o in after["Contents"]] == ["l/m/2", "l/n/1"]
    assert after["Contents"][0]["Owner"]["ID"] == "plimsoll"


@expect("works")
def paginators():
    for name in ["list_objects_v2", "list_objects"]:
        pages = s3.get_paginator(name).paginate(
            Bucket="calls", Prefix="l/", PaginationConfig={"PageSize": 2}
        )
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        assert keys == ["l/1", "l/2", "l/m/1", "l/m/2", "l/n/1"], name


# Tags.


@expect("works")
def object_tags():
    key = {"Bucket": "calls", "Key": "cond"}
    tags = [{"Key": "a b", "Value": "1+2 / 3"}, {"Key": "é", "Value": ""}]
    s3.put_object_tagging(**key, Tagging={"TagSet": tags})
    assert s3.get_object_tagging(**key)["TagSet"] == tags
    s3.delete_object_tagging(**key)
    assert s3.get_object_tagging(**key)["TagSet"] == []


@expect("InvalidTag")
def tags_too_long():
    tags = [{"Key": "k", "Value": "v" * 257}]
    s3.put_object_tagging(Bucket="calls", Key="cond", Tagging={"TagSet": tags})


@expect("BadRequest")
def tags_too_many():
    tags = [{"Key": str(i), "Value": ""} for i in range(11)]
    s3.put_object_tagging(Bucket="calls", Key="cond", Tagging={"TagSet": tags})


# Presigned URLs and forms.


def fetch(url, method="GET", data=None, headers={}):
    request = urllib.request.Request(url, method=method, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.status, answer.read()


@expect("works")
def presigned_urls():
    signer = client(signature_version="s3v4")
    key = {"Bucket": "calls", "Key": "by url"}
    url = signer.generate_presigned_url("put_object", Params=key, ExpiresIn=60)
    answer = fetch(url, "PUT", b"from a url")
    assert answer[0] == 200, answer
    url = signer.generate_presigned_url("get_object", Params=key, ExpiresIn=60)
    assert fetch(url) == (200, b"from a url"), fetch(url)
    try:
        name, signature = url.split("X-Amz-Signature=")
        fetch(name + "X-Amz-Signature=" + "0" * 64 + signature[64:])
        raise AssertionError("a wrong signature was let in")
    except urllib.error.HTTPError as error:
        assert error.code == 403


@expect("works")
def presigned_post():
    post = client(signature_version="s3v4").generate_presigned_post(
        "calls", "by form", Fields={"x-amz-meta-a": "b"}, Conditions=[{"x-amz-meta-a": "b"}]
    )
    fields = "".join(
        f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in post["fields"].items()
    )
    file = '--B\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nform\r\n--B--\r\n'
    kind = {"Content-Type": "multipart/form-data; boundary=B"}
    assert fetch(post["url"], "POST", (fields + file).encode(), kind)[0] == 204
    assert s3.head_object(Bucket="calls", Key="by form")["Metadata"] == {"a": "b"}


# Versions.


@expect("works")
def versioning():
    assert "Status" not in s3.get_bucket_versioning(Bucket="calls")
    s3.create_bucket(Bucket="versions")
    s3.put_bucket_versioning(
        Bucket="versions", VersioningConfiguration={"Status": "Enabled"}
    )
    assert s3.get_bucket_versioning(Bucket="versions")["Status"] == "Enabled"


@expect("works")
def versions_of_an_object():
    key = {"Bucket": "versions", "Key": "k"}
    ids = [s3.put_object(**key, Body=text)["VersionId"] for text in (b"1", b"2", b"3")]
    assert s3.get_object(**key)["VersionId"] == ids[2]
    assert s3.get_object(**key, VersionId=ids[0])["Body"].read() == b"1"
    assert s3.head_object(**key, VersionId=ids[1])["ContentLength"] == 1
    gone = s3.delete_object(**key)
    assert gone["DeleteMarker"] is True
    listed = s3.list_object_versions(Bucket="versions")
    assert [v["VersionId"] for v in listed["Versions"]] == ids[::-1]
    assert [m["VersionId"] for m in listed["DeleteMarkers"]] == [gone["VersionId"]]
    assert listed["DeleteMarkers"][0]["IsLatest"] and not listed["Versions"][0]["IsLatest"]
    pages = s3.get_paginator("list_object_versions").paginate(
        Bucket="versions", PaginationConfig={"PageSize": 1}
    )
    found = [len(p.get("Versions", [])) + len(p.get("DeleteMarkers", [])) for p in pages]
    assert found == [1, 1, 1, 1], found
    s3.copy_object(**key, CopySource={**key, "VersionId": ids[0]})
    assert s3.get_object(**key)["Body"].read() == b"1", "an old version is the newest again"


@expect("NoSuchKey")
def get_of_what_a_marker_hides():
    s3.put_object(Bucket="versions", Key="hidden", Body=b"x")
    s3.delete_object(Bucket="versions", Key="hidden")
    s3.get_object(Bucket="versions", Key="hidden")


@expect("MethodNotAllowed")
def get_of_a_marker():
    marker = s3.delete_object(Bucket="versions", Key="hidden")["VersionId"]
    s3.get_object(Bucket="versions", Key="hidden", VersionId=marker)


@expect("NoSuchVersion")
def get_of_no_version():
    s3.get_object(Bucket="versions", Key="k", VersionId="00000000ffffffff")


@expect("works")
def suspended_versioning():
    s3.put_bucket_versioning(
        Bucket="versions", VersioningConfiguration={"Status": "Suspended"}
    )
    key = {"Bucket": "versions", "Key": "s"}
    assert "VersionId" not in s3.put_object(**key, Body=b"1")
    s3.put_object(**key, Body=b"2")
    versions = s3.list_object_versions(Bucket="versions", Prefix="s")["Versions"]
    assert [v["VersionId"] for v in versions] == ["null"]


# Object lock.


@expect("works")
def object_lock():
    s3.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 2}}
    s3.put_object_lock_configuration(
        Bucket="locked",
        ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule},
    )
    told = s3.get_object_lock_configuration(Bucket="locked")["ObjectLockConfiguration"]
    assert told == {"ObjectLockEnabled": "Enabled", "Rule": rule}
    s3.put_object(Bucket="locked", Key="k", Body=b"x")
    assert s3.head_object(Bucket="locked", Key="k")["ObjectLockMode"] == "GOVERNANCE"


@expect("ObjectLockConfigurationNotFoundError")
def no_object_lock():
    s3.get_object_lock_configuration(Bucket="calls")


@expect("AccessDenied")
def delete_of_what_is_retained():
    version = s3.head_object(Bucket="locked", Key="k")["VersionId"]
    s3.delete_object(Bucket="locked", Key="k", VersionId=version)


@expect("works")
def delete_with_leave_to_bypass():
    version = s3.head_object(Bucket="locked", Key="k")["VersionId"]
    s3.delete_object(
        Bucket="locked", Key="k", VersionId=version, BypassGovernanceRetention=True
    )


@expect("works")
def retention_and_legal_hold():
    key = {"Bucket": "locked", "Key": "held"}
    s3.put_object(**key, Body=b"x")
    until = in_a_year().replace(microsecond=0)
    s3.put_object_retention(**key, Retention={"Mode": "COMPLIANCE", "RetainUntilDate": until})
    told = s3.get_object_retention(**key)["Retention"]
    assert told == {"Mode": "COMPLIANCE", "RetainUntilDate": until}
    s3.put_object_legal_hold(**key, LegalHold={"Status": "ON"})
    assert s3.get_object_legal_hold(**key)["LegalHold"] == {"Status": "ON"}


@expect("AccessDenied")
def compliance_is_not_shortened():
    retention = {"Mode": "GOVERNANCE", "RetainUntilDate": in_a_year()}
    s3.put_object_retention(
        Bucket="locked", Key="held", Retention=retention, BypassGovernanceRetention=True
    )


@expect("InvalidRequest")
def retention_without_lock():
    until = in_a_year()
    s3.put_object(
        Bucket="calls",
        Key="k",
        Body=b"",
        ObjectLockMode="GOVERNANCE",
        ObjectLockRetainUntilDate=until,
    )


@expect("InvalidBucketState")
def locked_buckets_keep_versions():
    s3.put_bucket_versioning(
        Bucket="locked", VersioningConfiguration={"Status": "Suspended"}
    )


# Removing.


@expect("PreconditionFailed")
def delete_of_another():
    s3.delete_object(Bucket="calls", Key="cond", IfMatch='"other"')


@expect("works")
def delete_many():
    objects = [{"Key": key} for key in ["l/1", "l/2", "never was"]]
    done = s3.delete_objects(Bucket="calls", Delete={"Objects": objects})
    assert len(done["Deleted"]) == 3 and "Errors" not in done
    kept = s3.list_object_versions(Bucket="locked")["Versions"][0]
    named = [{"Key": kept["Key"], "VersionId": kept["VersionId"]}]
    done = s3.delete_objects(
        Bucket="locked", Delete={"Objects": named}, BypassGovernanceRetention=True
    )
    assert [error["Code"] for error in done["Errors"]] == ["AccessDenied"]


@expect("BucketNotEmpty")
def delete_bucket_that_holds():
    s3.delete_bucket(Bucket="calls")


@expect("works")
def delete_object_and_wait():
    s3.delete_object(Bucket="calls", Key="cond")
    s3.get_waiter("object_not_exists").wait(Bucket="calls", Key="cond")


@expect("works")
def empty_and_delete_buckets():
    resource = boto3.resource(
        "s3",
        endpoint_url=ENDPOINT,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
    )
    for name in ["calls", "versions"]:
        resource.Bucket(name).object_versions.delete()
        s3.delete_bucket(Bucket=name)
        s3.get_waiter("bucket_not_exists").wait(Bucket=name)


def outcome_of(call):
    try:
        call()
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"].get("Message")
        if code == "NotImplemented" and not message:
            return "NotImplemented without saying what"
        return code
    except (AssertionError, WaiterError, Exception) as error:  # noqa: B014
        return f"{type(error).__name__}: {error}"
    return "works"


def main():
    failed = 0
    for call, expected in calls:
        found = outcome_of(call)
        failed += found != expected
        word = "as expected" if found == expected else f"NOT AS EXPECTED, which is {expected}"
        print(f"{call.__name__}: {found} ({word})", flush=True)
    return 1 if failed else 0


sys.exit(main())
