"""Tests further requests about objects: versions, parts, attributes, conditional writes, and the
settings of a bucket without any."""

import base64
import hashlib
import os
import pathlib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

import botocore.exceptions
import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refused
from tests.trainyard_server import Answer, Server

MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def s3(server: Server) -> BaseClient:
    return server.boto("s3")


@pytest.fixture
def bucket(s3: BaseClient) -> str:
    name = fresh("objects")
    s3.create_bucket(Bucket=name)
    return name


def status(call: Callable[..., object], **arguments: Any) -> int:
    """Returns the HTTP status of a rejection: responses to HEAD have no body."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**arguments)
    return int(caught.value.response["ResponseMetadata"]["HTTPStatusCode"])


def upload(
    s3: BaseClient, bucket: str, key: str, parts: dict[int, bytes], **more: Any
) -> dict[str, Any]:
    """Uploads parts with the given numbers; returns the response to the last request."""
    opened = s3.create_multipart_upload(Bucket=bucket, Key=key, **more)
    one = {"Bucket": bucket, "Key": key, "UploadId": opened["UploadId"]}
    algorithm = {name: more[name] for name in more if name == "ChecksumAlgorithm"}
    listed = []
    for number, body in parts.items():
        done = s3.upload_part(PartNumber=number, Body=body, **one, **algorithm)
        sums = {name: value for name, value in done.items() if name.startswith("Checksum")}
        sums.pop("ChecksumType", None)
        listed.append({"PartNumber": number, "ETag": done["ETag"]} | sums)
    answer: dict[str, Any] = s3.complete_multipart_upload(MultipartUpload={"Parts": listed}, **one)
    return answer


# -- versions


def test_each_object_is_listed_as_its_only_version(s3: BaseClient, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"1")["ETag"]
    s3.put_object(Bucket=bucket, Key="a", Body=b"22")
    for key in ("b/1", "b/2", "c \u00fc"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    page = s3.list_object_versions(Bucket=bucket)
    first = page["Versions"][0]
    assert [one["Key"] for one in page["Versions"]] == ["a", "b/1", "b/2", "c \u00fc"]
    assert (first["VersionId"], first["IsLatest"], first["Size"]) == ("null", True, 2)
    assert first["ETag"] not in ("", etag) and first["StorageClass"] == "STANDARD"
    assert first["Owner"]["ID"] and first["LastModified"] and not page["IsTruncated"]
    assert "DeleteMarkers" not in page
    rolled = s3.list_object_versions(Bucket=bucket, Delimiter="/", Prefix="b")
    assert rolled["CommonPrefixes"] == [{"Prefix": "b/"}] and "Versions" not in rolled
    assert (rolled["Delimiter"], rolled["Prefix"]) == ("/", "b")


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_pages_of_versions_meet_each_key_once(s3: BaseClient, bucket: str, size: int) -> None:
    keys = ["a", "a b/\u00fc", "a/1", "a/2", "b&<>\"'", "c/x/y", "c\nd"]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    pages = s3.get_paginator("list_object_versions")
    found = [
        one["Key"]
        for page in pages.paginate(Bucket=bucket, PaginationConfig={"PageSize": size})
        for one in page.get("Versions", [])
    ]
    assert found == sorted(keys)
    plain, rolled = [], []
    for page in pages.paginate(Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": size}):
        plain += [one["Key"] for one in page.get("Versions", [])]
        rolled += [one["Prefix"] for one in page.get("CommonPrefixes", [])]
    assert (sorted(plain), rolled) == (["a", "b&<>\"'", "c\nd"], ["a b/", "a/", "c/"])


def test_markers_of_versions(s3: BaseClient, bucket: str) -> None:
    for key in ("a", "b"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    page = s3.list_object_versions(Bucket=bucket, MaxKeys=1)
    assert (page["NextKeyMarker"], page["NextVersionIdMarker"]) == ("a", "null")
    rest = s3.list_object_versions(Bucket=bucket, KeyMarker="a", VersionIdMarker="null")
    assert [one["Key"] for one in rest["Versions"]] == ["b"] and "NextKeyMarker" not in rest
    assert refused(s3.list_object_versions, Bucket=bucket, VersionIdMarker="null") == (
        "InvalidArgument",
        "A version-id marker cannot be specified without a key marker.",
    )
    assert refused(
        s3.list_object_versions, Bucket=bucket, KeyMarker="a", VersionIdMarker="another"
    ) == ("InvalidArgument", "Invalid version id specified")
    assert refused(s3.list_object_versions, Bucket=fresh("missing"))[0] == "NoSuchBucket"


def test_requests_that_name_a_version(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="a", Body=b"x")
    assert s3.get_object(Bucket=bucket, Key="a", VersionId="null")["Body"].read() == b"x"
    copied = {"Bucket": bucket, "Key": "a", "VersionId": "null"}
    s3.copy_object(Bucket=bucket, Key="b", CopySource=copied)
    calls: dict[str, Callable[..., Any]] = {
        "copy": lambda version: s3.copy_object(
            Bucket=bucket, Key="b", CopySource=copied | {"VersionId": version}
        ),
        "get": lambda version: s3.get_object(Bucket=bucket, Key="a", VersionId=version),
        "attributes": lambda version: s3.get_object_attributes(
            Bucket=bucket, Key="a", VersionId=version, ObjectAttributes=["ETag"]
        ),
        "acl": lambda version: s3.get_object_acl(Bucket=bucket, Key="a", VersionId=version),
        "delete": lambda version: s3.delete_object(Bucket=bucket, Key="a", VersionId=version),
    }
    for name, call in calls.items():
        # An ID as S3 makes them, and a text that cannot be one.
        assert refused(call, version="3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrH")[0] == "NoSuchVersion", name
        assert refused(call, version="other") == (
            "InvalidArgument",
            "Invalid version id specified",
        ), name
    assert refused(s3.head_object, Bucket=bucket, Key="a", VersionId="other")[0] == "400"
    # Tools that empty a bucket with all its versions, such as boto3's resource, do this.
    versions = s3.list_object_versions(Bucket=bucket)["Versions"]
    named = [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in versions]
    s3.delete_objects(Bucket=bucket, Delete={"Objects": named})
    s3.delete_bucket(Bucket=bucket)


def test_versions_in_the_cli(aws: Callable[..., Answer], s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="a/b c", Body=b"x")
    listed = aws("s3api", "list-object-versions", "--bucket", bucket)
    assert [(one["Key"], one["VersionId"]) for one in listed["Versions"]] == [("a/b c", "null")]
    assert aws("s3api", "get-bucket-versioning", "--bucket", bucket) == ""


# -- pages


def test_a_page_read_by_token_has_no_start_after(s3: BaseClient, bucket: str) -> None:
    for key in "abcd":
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    first = s3.list_objects_v2(Bucket=bucket, StartAfter="a", MaxKeys=1)
    assert ([one["Key"] for one in first["Contents"]], first["StartAfter"]) == (["b"], "a")
    token = first["NextContinuationToken"]
    # The token comes before the key that the SDKs' paginators send again.
    second = s3.list_objects_v2(Bucket=bucket, StartAfter="a", ContinuationToken=token)
    assert [one["Key"] for one in second["Contents"]] == ["c", "d"]
    assert (second["ContinuationToken"], second.get("StartAfter")) == (token, None)


def test_a_deletion_of_nothing_is_malformed_before_its_bucket_is_missing(s3: BaseClient) -> None:
    assert (
        refused(s3.delete_objects, Bucket=fresh("missing"), Delete={"Objects": []})[0]
        == "MalformedXML"
    )


def test_next_marker_comes_with_a_delimiter_only(s3: BaseClient, bucket: str) -> None:
    for key in ("a", "b/1", "b/2", "c"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    page = s3.list_objects(Bucket=bucket, MaxKeys=1)
    assert page["IsTruncated"] and "NextMarker" not in page
    page = s3.list_objects(Bucket=bucket, MaxKeys=1, Delimiter="")
    assert page["IsTruncated"] and "NextMarker" not in page
    page = s3.list_objects(Bucket=bucket, MaxKeys=2, Delimiter="/")
    assert page["NextMarker"] == "b/" and page["CommonPrefixes"] == [{"Prefix": "b/"}]
    page = s3.list_objects(Bucket=bucket, Delimiter="/", Marker=page["NextMarker"])
    assert [one["Key"] for one in page["Contents"]] == ["c"] and "NextMarker" not in page


@pytest.mark.parametrize("size", [1, 2, 100])
def test_uploads_roll_up_at_a_delimiter(s3: BaseClient, bucket: str, size: int) -> None:
    for key in ("a", "b/1", "b/2", "b/2", "c/d", "d"):
        s3.create_multipart_upload(Bucket=bucket, Key=key)
    keys, prefixes = [], []
    for page in s3.get_paginator("list_multipart_uploads").paginate(
        Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": size}
    ):
        keys += [one["Key"] for one in page.get("Uploads", [])]
        prefixes += [one["Prefix"] for one in page.get("CommonPrefixes", [])]
    assert (keys, prefixes) == (["a", "d"], ["b/", "c/"])
    within = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/", Prefix="b/")
    assert [one["Key"] for one in within["Uploads"]] == ["b/1", "b/2", "b/2"]


def test_pages_of_an_uploads_parts(s3: BaseClient, bucket: str) -> None:
    one = dict(Bucket=bucket, Key="k")
    one["UploadId"] = s3.create_multipart_upload(**one)["UploadId"]
    empty = s3.list_parts(**one)
    assert (empty["NextPartNumberMarker"], empty["IsTruncated"]) == (0, False)
    for number in (1, 2, 5):
        s3.upload_part(PartNumber=number, Body=b"x", **one)
    page = s3.list_parts(MaxParts=2, **one)
    assert (page["NextPartNumberMarker"], page["IsTruncated"]) == (2, True)
    rest = s3.list_parts(PartNumberMarker=2, **one)
    assert [part["PartNumber"] for part in rest["Parts"]] == [5]
    assert (rest["NextPartNumberMarker"], rest["IsTruncated"]) == (5, False)
    for name, argument in (("MaxParts", "max-parts"), ("PartNumberMarker", "part-number-marker")):
        assert refused(s3.list_parts, **{name: -1}, **one) == (
            "InvalidArgument",
            f"Argument {argument} must be an integer between 0 and 2147483647",
        )
        assert refused(s3.list_parts, **{name: 1 << 31}, **one) == (
            "InvalidArgument",
            f"Provided {argument} not an integer or within integer range",
        )


def test_an_unchanged_object_is_named_by_its_etag(s3: BaseClient, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["ETag"]
    for call in (s3.get_object, s3.head_object):
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            call(Bucket=bucket, Key="k", IfNoneMatch=etag)
        headers = caught.value.response["ResponseMetadata"]["HTTPHeaders"]
        assert headers["etag"] == etag and "last-modified" in headers


# -- parts


def test_a_range_beyond_the_end_reports_the_size(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        s3.get_object(Bucket=bucket, Key="k", Range="bytes=10-20")
    error = caught.value.response["Error"]
    assert error["Code"] == "InvalidRange"
    assert (error["ActualObjectSize"], error["RangeRequested"]) == ("10", "bytes=10-20")


def test_parts_are_read_by_their_numbers(s3: BaseClient, bucket: str) -> None:
    parts = {1: os.urandom(5 * MEBIBYTE), 4: os.urandom(5 * MEBIBYTE + 1), 7: b"the end"}
    upload(s3, bucket, "big", parts)
    whole = b"".join(parts.values())
    begin = 0
    for number, body in parts.items():
        end = begin + len(body) - 1
        got = s3.get_object(Bucket=bucket, Key="big", PartNumber=number)
        assert got["ResponseMetadata"]["HTTPStatusCode"] == 206
        assert got["Body"].read() == body == whole[begin : end + 1]
        assert got["ContentRange"] == f"bytes {begin}-{end}/{len(whole)}"
        assert (got["PartsCount"], got["ContentLength"]) == (3, len(body))
        head = s3.head_object(Bucket=bucket, Key="big", PartNumber=number)
        assert head["ResponseMetadata"]["HTTPStatusCode"] == 206
        assert (head["PartsCount"], head["ContentLength"]) == (3, len(body))
        assert head["ContentRange"] == got["ContentRange"]
        begin = end + 1
    assert "PartsCount" not in s3.head_object(Bucket=bucket, Key="big")
    assert refused(s3.get_object, Bucket=bucket, Key="big", PartNumber=2) == (
        "InvalidPartNumber",
        "The requested partnumber is not satisfiable",
    )
    assert status(s3.get_object, Bucket=bucket, Key="big", PartNumber=2) == 416
    assert status(s3.head_object, Bucket=bucket, Key="big", PartNumber=8) == 416
    for number in (0, -1, 10_001):
        assert refused(s3.get_object, Bucket=bucket, Key="big", PartNumber=number) == (
            "InvalidArgument",
            "Part number must be an integer between 1 and 10000, inclusive",
        )
    assert refused(s3.get_object, Bucket=bucket, Key="big", PartNumber=1, Range="bytes=0-1") == (
        "InvalidRequest",
        "Cannot specify both Range header and partNumber query parameter",
    )


def test_an_object_put_as_a_whole_is_its_first_part(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="plain", Body=b"0123456789")
    got = s3.get_object(Bucket=bucket, Key="plain", PartNumber=1)
    assert got["Body"].read() == b"0123456789" and "PartsCount" not in got
    assert got["ContentRange"] == "bytes 0-9/10"
    assert status(s3.get_object, Bucket=bucket, Key="plain", PartNumber=2) == 416
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    assert s3.get_object(Bucket=bucket, Key="empty", PartNumber=1)["Body"].read() == b""


def test_a_part_comes_with_its_own_checksum(s3: BaseClient, bucket: str) -> None:
    parts = {1: os.urandom(5 * MEBIBYTE), 2: b"the end"}
    upload(s3, bucket, "summed", parts, ChecksumAlgorithm="SHA256")
    for number, body in parts.items():
        # boto3 itself compares the bytes with the checksum.
        got = s3.get_object(Bucket=bucket, Key="summed", PartNumber=number, ChecksumMode="ENABLED")
        assert got["Body"].read() == body
        assert base64.b64decode(got["ChecksumSHA256"]) == hashlib.sha256(body).digest()
        assert got["ChecksumType"] == "COMPOSITE"


def test_parts_in_the_cli(
    aws: Callable[..., Answer], s3: BaseClient, bucket: str, tmp_path: pathlib.Path
) -> None:
    upload(s3, bucket, "big", {1: b"x" * (5 * MEBIBYTE), 2: b"the end"})
    named = ("--bucket", bucket, "--key", "big", "--part-number", "2")
    assert aws("s3api", "head-object", *named)["ContentLength"] == 7
    aws("s3api", "get-object", *named, str(tmp_path / "part"))
    assert (tmp_path / "part").read_bytes() == b"the end"


def test_ranges_of_copied_parts(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="source", Body=b"0123456789")
    opened = s3.create_multipart_upload(Bucket=bucket, Key="copy")["UploadId"]

    def copy(text: str, **more: Any) -> dict[str, Any]:
        return dict(
            Bucket=bucket,
            Key="copy",
            UploadId=opened,
            PartNumber=1,
            CopySource=f"{bucket}/source",
            CopySourceRange=text,
            **more,
        )

    for text in ("0-2", "bytes=0", "bytes=5-", "bytes=-3", "bytes=a-b", "bytes=0-2,3-5"):
        code, message = refused(s3.upload_part_copy, **copy(text))
        assert code == "InvalidArgument" and "bytes=first-last" in message, text
    for text in ("bytes=5-10", "bytes=10-12"):
        assert refused(s3.upload_part_copy, **copy(text)) == (
            "InvalidArgument",
            "Range specified is not valid for source object of size: 10",
        )
    assert refused(s3.upload_part_copy, **copy("bytes=2-4", CopySourceIfMatch='"other"'))[0] == (
        "PreconditionFailed"
    )
    part = s3.upload_part_copy(**copy("bytes=2-4"))["CopyPartResult"]["ETag"]
    s3.complete_multipart_upload(
        Bucket=bucket,
        Key="copy",
        UploadId=opened,
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part}]},
    )
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == b"234"


# -- attributes

ALL = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]


def test_attributes_of_an_object(s3: BaseClient, bucket: str) -> None:
    put = s3.put_object(Bucket=bucket, Key="plain", Body=b"hello", ChecksumAlgorithm="SHA256")
    got = s3.get_object_attributes(Bucket=bucket, Key="plain", ObjectAttributes=ALL)
    assert got["ETag"] == put["ETag"].strip('"'), "S3 leaves the quotes out, here only"
    assert (got["ObjectSize"], got["StorageClass"]) == (5, "STANDARD")
    assert got["Checksum"]["ChecksumSHA256"] == put["ChecksumSHA256"]
    assert got["Checksum"]["ChecksumType"] == "FULL_OBJECT"
    assert got["LastModified"] == s3.head_object(Bucket=bucket, Key="plain")["LastModified"]
    assert "ObjectParts" not in got
    got = s3.get_object_attributes(Bucket=bucket, Key="plain", ObjectAttributes=["ObjectSize"])
    assert got["ObjectSize"] == 5 and "ETag" not in got and "Checksum" not in got
    assert (
        refused(s3.get_object_attributes, Bucket=bucket, Key="missing", ObjectAttributes=["ETag"])[
            0
        ]
        == "NoSuchKey"
    )
    assert refused(
        s3.get_object_attributes, Bucket=bucket, Key="plain", ObjectAttributes=["Colour"]
    ) == ("InvalidArgument", "Invalid attribute name specified.")


def test_attributes_list_parts_with_checksums(s3: BaseClient, bucket: str) -> None:
    parts = {1: os.urandom(5 * MEBIBYTE), 2: os.urandom(5 * MEBIBYTE), 3: b"the end"}
    upload(s3, bucket, "big", parts, ChecksumAlgorithm="SHA256")
    one = {"Bucket": bucket, "Key": "big", "ObjectAttributes": ["ObjectParts", "Checksum"]}
    got = s3.get_object_attributes(**one)
    assert got["Checksum"]["ChecksumSHA256"].endswith("-3")
    listed = got["ObjectParts"]
    assert (listed["TotalPartsCount"], listed["IsTruncated"]) == (3, False)
    assert [(part["PartNumber"], part["Size"]) for part in listed["Parts"]] == [
        (number, len(body)) for number, body in parts.items()
    ]
    assert [base64.b64decode(part["ChecksumSHA256"]) for part in listed["Parts"]] == [
        hashlib.sha256(body).digest() for body in parts.values()
    ]
    page = s3.get_object_attributes(**one, MaxParts=1, PartNumberMarker=1)["ObjectParts"]
    assert [part["PartNumber"] for part in page["Parts"]] == [2]
    assert (page["IsTruncated"], page["NextPartNumberMarker"], page["MaxParts"]) == (True, 2, 1)


# -- conditions of writes


def test_a_put_replaces_only_the_object_of_that_etag(s3: BaseClient, bucket: str) -> None:
    assert refused(s3.put_object, Bucket=bucket, Key="k", Body=b"x", IfMatch='"e"')[0] == (
        "NoSuchKey"
    )
    first = s3.put_object(Bucket=bucket, Key="k", Body=b"first", IfNoneMatch="*")["ETag"]
    assert status(s3.put_object, Bucket=bucket, Key="k", Body=b"x", IfNoneMatch="*") == 412
    assert status(s3.put_object, Bucket=bucket, Key="k", Body=b"x", IfMatch='"other"') == 412
    for etag in (first.strip('"'), first[1:]):
        first = s3.put_object(Bucket=bucket, Key="k", Body=b"first", IfMatch=etag)["ETag"]
    second = s3.put_object(Bucket=bucket, Key="k", Body=b"second", IfMatch=first)["ETag"]
    assert refused(s3.put_object, Bucket=bucket, Key="k", Body=b"x", IfMatch=first) == (
        "PreconditionFailed",
        "At least one of the pre-conditions you specified did not hold",
    )
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"second"
    assert status(s3.put_object, Bucket=bucket, Key="k", Body=b"x", IfNoneMatch=second) == 501


def test_a_finished_upload_replaces_only_the_object_of_that_etag(
    s3: BaseClient, bucket: str
) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"first")["ETag"]
    one = dict(Bucket=bucket, Key="k")
    one["UploadId"] = s3.create_multipart_upload(**one)["UploadId"]
    part = s3.upload_part(PartNumber=1, Body=b"part", **one)["ETag"]
    one["MultipartUpload"] = {"Parts": [{"PartNumber": 1, "ETag": part}]}  # type: ignore[assignment]
    assert status(s3.complete_multipart_upload, IfNoneMatch="*", **one) == 412
    assert status(s3.complete_multipart_upload, IfMatch='"other"', **one) == 412
    s3.complete_multipart_upload(IfMatch=etag, **one)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"part"


def test_a_copy_has_conditions_on_both_sides(s3: BaseClient, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="from", Body=b"bytes")["ETag"]
    modified = s3.head_object(Bucket=bucket, Key="from")["LastModified"]
    copy = dict(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")
    for refusing in (
        {"CopySourceIfMatch": '"other"'},
        {"CopySourceIfNoneMatch": etag},
        {"CopySourceIfModifiedSince": modified},
    ):
        assert refused(s3.copy_object, **copy, **refusing)[0] == "PreconditionFailed", refusing
    s3.copy_object(**copy, CopySourceIfUnmodifiedSince=modified, IfNoneMatch="*")
    assert refused(s3.copy_object, **copy, IfNoneMatch="*")[0] == "PreconditionFailed"
    assert refused(s3.copy_object, **copy, IfMatch='"other"')[0] == "PreconditionFailed"
    s3.copy_object(**copy, IfMatch=etag)
    # A change of the storage class alone is a change.
    s3.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/to", StorageClass="STANDARD")


def test_a_storage_class_is_shown(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="plain", Body=b"x")
    s3.put_object(Bucket=bucket, Key="rare", Body=b"x", StorageClass="STANDARD_IA")
    upload(s3, bucket, "parts", {1: b"x"}, StorageClass="GLACIER_IR")
    listed = s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert {one["Key"]: one["StorageClass"] for one in listed} == {
        "parts": "GLACIER_IR",
        "plain": "STANDARD",
        "rare": "STANDARD_IA",
    }
    versions = s3.list_object_versions(Bucket=bucket, Prefix="rare")["Versions"]
    assert versions[0]["StorageClass"] == "STANDARD_IA"
    assert "StorageClass" not in s3.head_object(Bucket=bucket, Key="plain")
    assert s3.head_object(Bucket=bucket, Key="rare")["StorageClass"] == "STANDARD_IA"
    s3.put_object_tagging(
        Bucket=bucket, Key="rare", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}
    )
    assert s3.get_object(Bucket=bucket, Key="rare")["StorageClass"] == "STANDARD_IA"
    attributes = s3.get_object_attributes(
        Bucket=bucket, Key="rare", ObjectAttributes=["StorageClass"]
    )
    assert attributes["StorageClass"] == "STANDARD_IA"
    # A copy has the class of its request, not that of its source.
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/rare")
    assert "StorageClass" not in s3.head_object(Bucket=bucket, Key="copy")
    s3.copy_object(
        Bucket=bucket, Key="rare", CopySource=f"{bucket}/rare", StorageClass="ONEZONE_IA"
    )
    assert s3.head_object(Bucket=bucket, Key="rare")["StorageClass"] == "ONEZONE_IA"
    for call in (s3.put_object, s3.create_multipart_upload):
        assert refused(call, Bucket=bucket, Key="k", StorageClass="FAST") == (
            "InvalidStorageClass",
            "The storage class you specified is not valid",
        )


def test_a_websites_redirection_is_shown(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="a", Body=b"x", WebsiteRedirectLocation="/b")
    assert s3.get_object(Bucket=bucket, Key="a")["WebsiteRedirectLocation"] == "/b"
    s3.copy_object(Bucket=bucket, Key="c", CopySource=f"{bucket}/a")
    assert "WebsiteRedirectLocation" not in s3.head_object(Bucket=bucket, Key="c")
    assert (
        refused(s3.put_object, Bucket=bucket, Key="a", WebsiteRedirectLocation="elsewhere")[0]
        == "InvalidRedirectLocation"
    )


def test_answers_have_the_headers_that_the_url_asks_for(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", ContentType="text/plain", CacheControl="a")
    wanted = {
        "ResponseContentType": "text/csv",
        "ResponseContentDisposition": 'attachment; filename="a.csv"',
        "ResponseContentLanguage": "de",
        "ResponseContentEncoding": "identity",
        "ResponseCacheControl": "no-cache",
        "ResponseExpires": "2030-01-01T00:00:00Z",
    }
    url = s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "k"} | wanted)
    with urllib.request.urlopen(url, timeout=60) as answer:
        headers = answer.headers
    assert headers["Content-Type"] == "text/csv" and headers["Content-Language"] == "de"
    assert headers["Content-Disposition"] == 'attachment; filename="a.csv"'
    assert headers["Content-Encoding"] == "identity" and headers["Cache-Control"] == "no-cache"
    assert headers["Expires"] == "Tue, 01 Jan 2030 00:00:00 GMT"


# -- settings that no bucket has

ABSENT = {
    "get_bucket_cors": "NoSuchCORSConfiguration",
    "get_bucket_encryption": "ServerSideEncryptionConfigurationNotFoundError",
    "get_bucket_lifecycle_configuration": "NoSuchLifecycleConfiguration",
    "get_bucket_policy": "NoSuchBucketPolicy",
    "get_bucket_replication": "ReplicationConfigurationNotFoundError",
    "get_bucket_website": "NoSuchWebsiteConfiguration",
    "get_object_lock_configuration": "ObjectLockConfigurationNotFoundError",
    "get_public_access_block": "NoSuchPublicAccessBlockConfiguration",
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "get_bucket_accelerate_configuration": {},
    "get_bucket_logging": {},
    "get_bucket_notification_configuration": {},
    "get_bucket_ownership_controls": {
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    },
    "get_bucket_request_payment": {"Payer": "BucketOwner"},
    "get_bucket_versioning": {},
}


@pytest.mark.parametrize("call", sorted(ABSENT | DEFAULTS))
def test_settings_of_a_bucket_without_any(s3: BaseClient, bucket: str, call: str) -> None:
    read = getattr(s3, call)
    assert refused(read, Bucket=fresh("missing"))[0] == "NoSuchBucket"
    assert refused(read, Bucket=bucket, ExpectedBucketOwner="000000000000")[0] == "AccessDenied"
    if call in ABSENT:
        assert refused(read, Bucket=bucket)[0] == ABSENT[call]
        assert status(read, Bucket=bucket) == 404
    else:
        answer = read(Bucket=bucket)
        answer.pop("ResponseMetadata")
        assert answer == DEFAULTS[call]


def test_settings_of_an_object_without_any(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    for call in (s3.get_object_legal_hold, s3.get_object_retention):
        assert refused(call, Bucket=bucket, Key="k") == (
            "InvalidRequest",
            "Bucket is missing Object Lock Configuration",
        )
    for call in (s3.get_object_acl, s3.get_object_retention):
        assert refused(call, Bucket=bucket, Key="missing")[0] == "NoSuchKey"


def test_access_lists_give_the_account_all_and_others_nothing(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", ACL="private")
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", ACL="bucket-owner-full-control")
    owner = s3.list_buckets()["Owner"]["ID"]
    for answer in (s3.get_bucket_acl(Bucket=bucket), s3.get_object_acl(Bucket=bucket, Key="k")):
        assert answer["Owner"]["ID"] == owner
        assert answer["Grants"] == [
            {"Grantee": {"ID": owner, "Type": "CanonicalUser"}, "Permission": "FULL_CONTROL"}
        ]
    s3.put_bucket_acl(Bucket=bucket, ACL="private")
    s3.put_object_acl(Bucket=bucket, Key="k", ACL="bucket-owner-full-control")
    disabled = ("AccessControlListNotSupported", "The bucket does not allow ACLs")
    everyone = 'uri="http://acs.amazonaws.com/groups/global/AllUsers"'
    grants = {"Grants": answer["Grants"], "Owner": {"ID": owner}}
    for more in ({"ACL": "public-read"}, {"GrantRead": everyone}, {"AccessControlPolicy": grants}):
        assert refused(s3.put_bucket_acl, Bucket=bucket, **more) == disabled
        assert refused(s3.put_object_acl, Bucket=bucket, Key="k", **more) == disabled
    assert refused(s3.put_object, Bucket=bucket, Key="k", Body=b"x", ACL="public-read") == disabled
    assert refused(s3.create_bucket, Bucket=fresh("public"), ACL="public-read")[0] == (
        "InvalidBucketAclWithObjectOwnership"
    )
    url = s3.meta.endpoint_url + "/" + urllib.parse.quote(f"{bucket}/k")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url, timeout=60)
    assert caught.value.status == 403


def test_access_lists_in_the_cli(aws: Callable[..., Answer], s3: BaseClient, bucket: str) -> None:
    acl = aws("s3api", "get-bucket-acl", "--bucket", bucket)
    assert acl["Grants"][0]["Grantee"]["Type"] == "CanonicalUser"
    assert aws("s3api", "get-bucket-location", "--bucket", bucket) == {"LocationConstraint": None}
