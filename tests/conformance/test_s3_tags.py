"""Tests tags of objects and buckets: they are stored, copied, listed and rejected, and need
permissions."""

import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refused
from tests.conformance.test_bucket_policies import user
from tests.conformance.test_s3_objects import MEBIBYTE, upload
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def s3(server: Server) -> BaseClient:
    return server.boto("s3")


@pytest.fixture
def bucket(s3: BaseClient) -> str:
    name = fresh("tags")
    s3.create_bucket(Bucket=name)
    return name


def tags_of(s3: BaseClient, bucket: str, key: str) -> dict[str, str]:
    found = s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
    return {one["Key"]: one["Value"] for one in found}


def tag_set(tags: dict[str, str]) -> dict[str, Any]:
    return {"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}


def test_tags_of_an_object(s3: BaseClient, bucket: str) -> None:
    tags = {"team": "blue \u00fc", "a+b=c": "x/y@z:1_2-3.4"}
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging=urllib.parse.urlencode(tags))
    assert tags_of(s3, bucket, "k") == tags
    assert s3.get_object(Bucket=bucket, Key="k")["TagCount"] == 2
    before = s3.head_object(Bucket=bucket, Key="k")
    assert before["TagCount"] == 2
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set({"run": ""}))
    assert tags_of(s3, bucket, "k") == {"run": ""}
    after = s3.head_object(Bucket=bucket, Key="k")
    assert (after["LastModified"], after["ETag"]) == (before["LastModified"], before["ETag"])
    s3.delete_object_tagging(Bucket=bucket, Key="k")
    assert tags_of(s3, bucket, "k") == {}
    assert "TagCount" not in s3.head_object(Bucket=bucket, Key="k")
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set({"run": "1"}))
    s3.put_object(Bucket=bucket, Key="k", Body=b"y")
    assert tags_of(s3, bucket, "k") == {}, "a new object has none of the old one's"
    assert refused(s3.get_object_tagging, Bucket=bucket, Key="missing")[0] == "NoSuchKey"
    for call, more in (
        (s3.put_object_tagging, {"Tagging": tag_set({"a": "b"})}),
        (s3.delete_object_tagging, {}),
    ):
        assert refused(call, Bucket=bucket, Key="missing", **more)[0] == "NoSuchKey"


def test_tags_of_a_bucket(s3: BaseClient, bucket: str) -> None:
    assert refused(s3.get_bucket_tagging, Bucket=bucket)[0] == "NoSuchTagSet"
    tags = {f"key {number}": "x" for number in range(50)}
    s3.put_bucket_tagging(Bucket=bucket, Tagging=tag_set(tags))
    found = s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
    assert {one["Key"]: one["Value"] for one in found} == tags
    made = fresh("tagged")
    s3.create_bucket(
        Bucket=made, CreateBucketConfiguration={"Tags": [{"Key": "team", "Value": "blue"}]}
    )
    assert s3.get_bucket_tagging(Bucket=made)["TagSet"] == [{"Key": "team", "Value": "blue"}]
    for wrong, code in ((tags | {"more": ""}, "BadRequest"), ({"aws:x": ""}, "InvalidTag")):
        assert refused(s3.put_bucket_tagging, Bucket=bucket, Tagging=tag_set(wrong))[0] == code
    assert len(s3.get_bucket_tagging(Bucket=bucket)["TagSet"]) == 50
    s3.delete_bucket_tagging(Bucket=bucket)
    assert refused(s3.get_bucket_tagging, Bucket=bucket)[0] == "NoSuchTagSet"
    assert refused(s3.get_bucket_tagging, Bucket=fresh("missing"))[0] == "NoSuchBucket"


def test_copies_and_uploads_have_tags(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="from", Body=b"x", Tagging="team=blue")
    copy = dict(Bucket=bucket, CopySource=f"{bucket}/from")
    s3.copy_object(Key="same", **copy)
    s3.copy_object(Key="other", Tagging="run=7", TaggingDirective="REPLACE", **copy)
    upload(s3, bucket, "big", {1: b"x" * (5 * MEBIBYTE), 2: b"end"}, Tagging="run=8")
    assert tags_of(s3, bucket, "same") == {"team": "blue"}
    assert tags_of(s3, bucket, "other") == {"run": "7"}
    assert tags_of(s3, bucket, "big") == {"run": "8"}
    s3.put_object_tagging(Bucket=bucket, Key="big", Tagging=tag_set({"run": "9"}))
    assert tags_of(s3, bucket, "big") == {"run": "9"}
    assert s3.get_object(Bucket=bucket, Key="big")["Body"].read().endswith(b"xend")


def test_invalid_tags_are_refused(s3: BaseClient, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="kept=1")
    many = {f"key-{number}": "x" for number in range(11)}
    key = ("InvalidTag", "The TagKey you have provided is invalid")
    value = ("InvalidTag", "The TagValue you have provided is invalid")
    for tags, error in (
        (many, ("BadRequest", "Object tags cannot be greater than 10")),
        ({"x" * 129: "x"}, key),
        ({"x<y": "x"}, key),
        ({"x": "x" * 257}, value),
        ({"aws:x": "x"}, ("InvalidTag", "Your TagKey cannot be prefixed with aws:")),
    ):
        assert refused(s3.put_object_tagging, Bucket=bucket, Key="k", Tagging=tag_set(tags)) == (
            error
        )
        header = urllib.parse.urlencode(tags)
        assert refused(s3.put_object, Bucket=bucket, Key="k", Body=b"y", Tagging=header) == error
    twice = {"TagSet": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}
    assert refused(s3.put_object_tagging, Bucket=bucket, Key="k", Tagging=twice) == (
        "InvalidTag",
        "Cannot provide multiple Tags with the same key",
    )
    for header, code in (("a=1&a=2", "InvalidArgument"), ("=x", "InvalidTag")):
        assert refused(s3.put_object, Bucket=bucket, Key="k", Body=b"y", Tagging=header)[0] == code
    assert tags_of(s3, bucket, "k") == {"kept": "1"}


def test_writing_with_tags_needs_the_right_to_tag(server: Server, bucket: str) -> None:
    _, plain = user(server, fresh("writer"), allow("s3:PutObject", bucket))
    _, tagger = user(
        server, fresh("tagger"), allow(["s3:PutObject", "s3:PutObjectTagging"], bucket)
    )
    for client in (plain, tagger):
        client.put_object(Bucket=bucket, Key="k", Body=b"x")
    more = dict(Bucket=bucket, Key="k", Tagging="a=b")
    assert refused(plain.put_object, Body=b"x", **more)[0] == "AccessDenied"
    assert refused(plain.create_multipart_upload, **more)[0] == "AccessDenied"
    tagger.put_object(Body=b"x", **more)


def allow(action: str | list[str], bucket: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": f"arn:aws:s3:::{bucket}/*"}
