"""Makes calls with boto3, as users write them, and compares each result with S3's. test_s3.py runs
this file with the current boto3 and with Debian's: `python s3_calls.py NAME`, with the server's
environment. A failed assertion ends it."""

import hashlib
import io
import os
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import boto3
import botocore.exceptions
from boto3.s3.transfer import TransferConfig
from botocore.client import BaseClient
from botocore.config import Config

MEBIBYTE = 1 << 20


def client(**more: Any) -> BaseClient:
    more.setdefault("region_name", "eu-west-1")
    more.setdefault("config", Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}))
    return boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"], **more)


def fresh_bucket(s3: BaseClient, name: str) -> str:
    region = s3.meta.region_name
    more = (
        {}
        if region == "us-east-1"
        else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    )
    s3.create_bucket(Bucket=name, **more)
    return name


def failure(call: Callable[..., Any], *arguments: Any, **more: Any) -> tuple[str, int]:
    try:
        call(*arguments, **more)
    except botocore.exceptions.ClientError as error:
        return error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    raise AssertionError("it was expected to fail")


def buckets() -> None:
    s3 = client()
    assert failure(s3.head_bucket, Bucket="calls-buckets") == ("404", 404)
    fresh_bucket(s3, "calls-buckets")
    s3.head_bucket(Bucket="calls-buckets")
    assert "calls-buckets" in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    assert (
        s3.get_bucket_location(Bucket="calls-buckets")["LocationConstraint"] == s3.meta.region_name
    )
    assert failure(fresh_bucket, s3, "calls-buckets") == ("BucketAlreadyOwnedByYou", 409)
    assert failure(
        s3.create_bucket,
        Bucket="calls-elsewhere",
        CreateBucketConfiguration={"LocationConstraint": "ap-south-1"},
    ) == ("IllegalLocationConstraintException", 400)
    account = boto3.client(
        "sts", endpoint_url=os.environ["AWS_ENDPOINT_URL"]
    ).get_caller_identity()["Account"]
    s3.head_bucket(Bucket="calls-buckets", ExpectedBucketOwner=account)
    assert failure(s3.head_bucket, Bucket="calls-buckets", ExpectedBucketOwner="000000000000") == (
        "403",
        403,
    )
    s3.put_object(Bucket="calls-buckets", Key="k", Body=b"")
    assert failure(s3.delete_bucket, Bucket="calls-buckets") == ("BucketNotEmpty", 409)
    s3.delete_object(Bucket="calls-buckets", Key="k")
    s3.delete_bucket(Bucket="calls-buckets")
    assert failure(s3.list_objects_v2, Bucket="calls-buckets") == ("NoSuchBucket", 404)
    # In us-east-1 S3 says yes to the same bucket twice, and keeps no constraint.
    first = client(region_name="us-east-1")
    first.create_bucket(Bucket="calls-first")
    first.create_bucket(Bucket="calls-first")
    assert first.get_bucket_location(Bucket="calls-first")["LocationConstraint"] is None


def objects() -> None:
    s3 = client()
    bucket = fresh_bucket(s3, "calls-objects")
    put = s3.put_object(
        Bucket=bucket,
        Key="a/b c+d?\u00fc",
        Body=b"0123456789",
        ContentType="text/plain",
        CacheControl="no-cache",
        ContentEncoding="identity",
        Metadata={"colour": "green"},
    )
    etag = '"' + hashlib.md5(b"0123456789").hexdigest() + '"'
    assert put["ETag"] == etag
    assert put["ResponseMetadata"]["RequestId"]
    got = s3.get_object(Bucket=bucket, Key="a/b c+d?\u00fc")
    assert got["Body"].read() == b"0123456789"
    assert (got["ContentType"], got["CacheControl"], got["ContentEncoding"]) == (
        "text/plain",
        "no-cache",
        "identity",
    )
    assert (
        got["Metadata"] == {"colour": "green"}
        and got["ETag"] == etag
        and got["ContentLength"] == 10
    )
    head = s3.head_object(Bucket=bucket, Key="a/b c+d?\u00fc")
    assert head["ContentLength"] == 10 and head["LastModified"] == got["LastModified"]
    assert failure(s3.get_object, Bucket=bucket, Key="no") == ("NoSuchKey", 404)
    assert failure(s3.head_object, Bucket=bucket, Key="no") == ("404", 404)
    assert failure(s3.put_object, Bucket=bucket, Key="k" * 1025, Body=b"") == (
        "KeyTooLongError",
        400,
    )
    s3.put_object(Bucket=bucket, Key="../../escape", Body=b"inside")
    assert s3.get_object(Bucket=bucket, Key="../../escape")["Body"].read() == b"inside"
    assert (
        s3.delete_object(Bucket=bucket, Key="never-there")["ResponseMetadata"]["HTTPStatusCode"]
        == 204
    )


def ranges() -> None:
    s3 = client()
    bucket = fresh_bucket(s3, "calls-ranges")
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")

    def cut(text: str) -> tuple[int, str | None, bytes]:
        got = s3.get_object(Bucket=bucket, Key="k", Range=text)
        return (
            got["ResponseMetadata"]["HTTPStatusCode"],
            got.get("ContentRange"),
            got["Body"].read(),
        )

    assert cut("bytes=2-4") == (206, "bytes 2-4/10", b"234")
    assert cut("bytes=7-") == (206, "bytes 7-9/10", b"789")
    assert cut("bytes=-3") == (206, "bytes 7-9/10", b"789")
    assert cut("bytes=5-100") == (206, "bytes 5-9/10", b"56789")
    assert cut("bytes=4-2") == (200, None, b"0123456789")
    assert failure(s3.get_object, Bucket=bucket, Key="k", Range="bytes=10-") == (
        "InvalidRange",
        416,
    )
    assert failure(s3.get_object, Bucket=bucket, Key="k", Range="bytes=-0") == ("InvalidRange", 416)
    head = s3.head_object(Bucket=bucket, Key="k", Range="bytes=1-2")
    assert head["ContentLength"] == 2


def conditions() -> None:
    s3 = client()
    bucket = fresh_bucket(s3, "calls-conditions")
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["ETag"]
    modified = s3.head_object(Bucket=bucket, Key="k")["LastModified"]
    assert s3.get_object(Bucket=bucket, Key="k", IfMatch=etag)["Body"].read() == b"x"
    assert failure(s3.get_object, Bucket=bucket, Key="k", IfMatch='"other"') == (
        "PreconditionFailed",
        412,
    )
    assert failure(s3.get_object, Bucket=bucket, Key="k", IfNoneMatch=etag) == ("304", 304)
    assert failure(s3.head_object, Bucket=bucket, Key="k", IfNoneMatch=etag) == ("304", 304)
    assert failure(s3.get_object, Bucket=bucket, Key="k", IfModifiedSince=modified) == ("304", 304)
    assert s3.get_object(Bucket=bucket, Key="k", IfUnmodifiedSince=modified)["Body"].read() == b"x"


def only_if_absent() -> None:
    s3 = client()
    bucket = fresh_bucket(s3, "calls-absent")
    s3.put_object(Bucket=bucket, Key="k", Body=b"first", IfNoneMatch="*")
    assert failure(s3.put_object, Bucket=bucket, Key="k", Body=b"second", IfNoneMatch="*") == (
        "PreconditionFailed",
        412,
    )
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"first"


def checksums() -> None:
    s3 = client()
    bucket = fresh_bucket(s3, "calls-checksums")
    for algorithm in ("CRC32", "SHA1", "SHA256"):
        put = s3.put_object(
            Bucket=bucket, Key=algorithm, Body=b"123456789", ChecksumAlgorithm=algorithm
        )
        got = s3.get_object(Bucket=bucket, Key=algorithm, ChecksumMode="ENABLED")
        assert got["Body"].read() == b"123456789"
        assert got["Checksum" + algorithm] == put["Checksum" + algorithm]
    assert (
        s3.head_object(Bucket=bucket, Key="CRC32", ChecksumMode="ENABLED")["ChecksumCRC32"]
        == "y/Q5Jg=="
    )
    assert failure(
        s3.put_object, Bucket=bucket, Key="bad", Body=b"x", ContentMD5="JfnnlDI7RTiF9RgfG2JNCw=="
    ) == ("BadDigest", 400)
    assert failure(s3.put_object, Bucket=bucket, Key="bad", Body=b"x", ContentMD5="short") == (
        "InvalidDigest",
        400,
    )
    assert failure(
        s3.put_object,
        Bucket=bucket,
        Key="bad",
        Body=b"x",
        ChecksumSHA256="FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
    ) == ("BadDigest", 400)
    assert failure(s3.head_object, Bucket=bucket, Key="bad") == ("404", 404)


def listing() -> None:
    s3 = client()
    bucket = fresh_bucket(s3, "calls-listing")
    keys = ["a", "a b/\u00fc", "a/1", "a/2", "b&<>\"'", "c/x/y", "c\nd"]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"xy")
    for operation, size in (("list_objects_v2", 2), ("list_objects_v2", 1000), ("list_objects", 3)):
        pages = s3.get_paginator(operation).paginate(
            Bucket=bucket, PaginationConfig={"PageSize": size}
        )
        found = [one for page in pages for one in page.get("Contents", [])]
        assert sorted(one["Key"] for one in found) == sorted(keys)
        assert all(
            one["Size"] == 2 and one["ETag"].startswith('"') and one["StorageClass"] == "STANDARD"
            for one in found
        )
        rolled, plain = [], []
        for page in s3.get_paginator(operation).paginate(
            Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": size}
        ):
            rolled += [one["Prefix"] for one in page.get("CommonPrefixes", [])]
            plain += [one["Key"] for one in page.get("Contents", [])]
        assert rolled == ["a b/", "a/", "c/"] and sorted(plain) == ["a", "b&<>\"'", "c\nd"], (
            rolled,
            plain,
        )
    page = s3.list_objects_v2(Bucket=bucket, Prefix="a/", StartAfter="a/1", FetchOwner=True)
    assert (
        [one["Key"] for one in page["Contents"]] == ["a/2"]
        and page["KeyCount"] == 1
        and page["Contents"][0]["Owner"]["ID"]
    )
    assert s3.list_objects_v2(Bucket=bucket, MaxKeys=0)["KeyCount"] == 0
    assert failure(s3.list_objects_v2, Bucket=bucket, ContinuationToken="!") == (
        "InvalidArgument",
        400,
    )
    removed = s3.delete_objects(
        Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys] + [{"Key": "never"}]}
    )
    assert sorted(one["Key"] for one in removed["Deleted"]) == sorted(keys + ["never"])
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    s3.put_object(Bucket=bucket, Key="q", Body=b"")
    assert "Deleted" not in s3.delete_objects(
        Bucket=bucket, Delete={"Objects": [{"Key": "q"}], "Quiet": True}
    )


def copies() -> None:
    s3 = client()
    bucket = fresh_bucket(s3, "calls-copies")
    s3.put_object(
        Bucket=bucket,
        Key="from \u00fc",
        Body=b"bytes",
        ContentType="text/plain",
        Metadata={"a": "1"},
    )
    s3.copy_object(Bucket=bucket, Key="to", CopySource={"Bucket": bucket, "Key": "from \u00fc"})
    got = s3.get_object(Bucket=bucket, Key="to")
    assert (
        got["Body"].read() == b"bytes"
        and got["Metadata"] == {"a": "1"}
        and got["ContentType"] == "text/plain"
    )
    s3.copy_object(
        Bucket=bucket,
        Key="to",
        CopySource=f"{bucket}/to",
        MetadataDirective="REPLACE",
        Metadata={"b": "2"},
    )
    assert s3.head_object(Bucket=bucket, Key="to")["Metadata"] == {"b": "2"}
    assert failure(s3.copy_object, Bucket=bucket, Key="to", CopySource=f"{bucket}/to") == (
        "InvalidRequest",
        400,
    )
    assert failure(s3.copy_object, Bucket=bucket, Key="x", CopySource=f"{bucket}/no") == (
        "NoSuchKey",
        404,
    )
    assert failure(
        s3.copy_object,
        Bucket=bucket,
        Key="x",
        CopySource=f"{bucket}/to",
        CopySourceIfMatch='"other"',
    ) == ("PreconditionFailed", 412)


def multipart() -> None:
    s3 = client()
    bucket = fresh_bucket(s3, "calls-multipart")
    body = os.urandom(20 * MEBIBYTE + 17)
    s3.upload_fileobj(
        io.BytesIO(body),
        bucket,
        "big",
        Config=TransferConfig(multipart_chunksize=8 * MEBIBYTE, max_concurrency=4),
    )
    head = s3.head_object(Bucket=bucket, Key="big")
    assert head["ETag"].endswith('-3"') and head["ContentLength"] == len(body)
    into = io.BytesIO()
    s3.download_fileobj(
        bucket,
        "big",
        into,
        Config=TransferConfig(multipart_chunksize=3 * MEBIBYTE, max_concurrency=4),
    )
    assert into.getvalue() == body
    s3.copy(
        {"Bucket": bucket, "Key": "big"},
        bucket,
        "copy",
        Config=TransferConfig(multipart_threshold=MEBIBYTE),
    )
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == body

    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts", Metadata={"m": "1"})["UploadId"]
    assert [one["UploadId"] for one in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == [
        upload
    ]
    parts = []
    for number, part in ((1, body[: 5 * MEBIBYTE]), (3, b"end")):
        etag = s3.upload_part(
            Bucket=bucket, Key="parts", UploadId=upload, PartNumber=number, Body=part
        )["ETag"]
        parts.append({"PartNumber": number, "ETag": etag})
    listed = s3.list_parts(Bucket=bucket, Key="parts", UploadId=upload, MaxParts=1)
    assert listed["IsTruncated"] and listed["Parts"][0]["Size"] == 5 * MEBIBYTE
    complete = dict(Bucket=bucket, Key="parts", UploadId=upload)
    assert failure(
        s3.complete_multipart_upload, MultipartUpload={"Parts": parts[::-1]}, **complete
    ) == ("InvalidPartOrder", 400)
    assert failure(
        s3.complete_multipart_upload,
        MultipartUpload={"Parts": [{"PartNumber": 2, "ETag": "x"}]},
        **complete,
    ) == ("InvalidPart", 400)
    done = s3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **complete)
    assert done["ETag"].endswith('-2"') and done["Bucket"] == bucket and done["Key"] == "parts"
    assert s3.get_object(Bucket=bucket, Key="parts")["Metadata"] == {"m": "1"}
    assert failure(
        s3.upload_part, Bucket=bucket, Key="parts", UploadId=upload, PartNumber=1, Body=b""
    ) == ("NoSuchUpload", 404)
    dropped = s3.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
    s3.abort_multipart_upload(Bucket=bucket, Key="parts", UploadId=dropped)
    assert failure(s3.abort_multipart_upload, Bucket=bucket, Key="parts", UploadId=dropped) == (
        "NoSuchUpload",
        404,
    )
    small = s3.create_multipart_upload(Bucket=bucket, Key="small")["UploadId"]
    parts = [
        {
            "PartNumber": n,
            "ETag": s3.upload_part(
                Bucket=bucket, Key="small", UploadId=small, PartNumber=n, Body=b"x"
            )["ETag"],
        }
        for n in (1, 2)
    ]
    assert failure(
        s3.complete_multipart_upload,
        Bucket=bucket,
        Key="small",
        UploadId=small,
        MultipartUpload={"Parts": parts},
    ) == ("EntityTooSmall", 400)


def presigned() -> None:
    s3 = client(config=Config(signature_version="s3v4", s3={"addressing_style": "path"}))
    bucket = fresh_bucket(s3, "calls-presigned")
    put = s3.generate_presigned_url(
        "put_object", Params={"Bucket": bucket, "Key": "a b/c"}, ExpiresIn=60
    )
    urllib.request.urlopen(urllib.request.Request(put, data=b"by url", method="PUT"))
    get = s3.generate_presigned_url(
        "get_object",
        Params={"Bucket": bucket, "Key": "a b/c", "ResponseContentType": "text/x"},
        ExpiresIn=60,
    )
    answer = urllib.request.urlopen(get)
    assert answer.read() == b"by url" and answer.headers["Content-Type"] == "text/x"
    for spoilt in (get.replace("X-Amz-Signature=", "X-Amz-Signature=0"), get.replace("c?", "d?")):
        try:
            urllib.request.urlopen(spoilt)
            raise AssertionError("a spoilt signature was taken")
        except urllib.error.HTTPError as error:
            assert error.code == 403 and b"<Code>SignatureDoesNotMatch</Code>" in error.read()
    # A PUT becomes a copy by a header, so that header must be signed:
    # else the URL would read every object of its signer.
    s3.put_object(Bucket=bucket, Key="secret", Body=b"the secret")
    try:
        urllib.request.urlopen(
            urllib.request.Request(
                put, data=b"", method="PUT", headers={"x-amz-copy-source": f"/{bucket}/secret"}
            )
        )
        raise AssertionError("an unsigned header was taken")
    except urllib.error.HTTPError as error:
        assert (
            error.code == 403
            and b"<HeadersNotSigned>x-amz-copy-source</HeadersNotSigned>" in error.read()
        )
    assert s3.get_object(Bucket=bucket, Key="a b/c")["Body"].read() == b"by url"
    copy = s3.generate_presigned_url(
        "copy_object",
        Params={"Bucket": bucket, "Key": "copy", "CopySource": f"{bucket}/secret"},
        ExpiresIn=60,
    )
    urllib.request.urlopen(
        urllib.request.Request(
            copy, data=b"", method="PUT", headers={"x-amz-copy-source": f"{bucket}/secret"}
        )
    )
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == b"the secret"


def over_tls() -> None:
    """Checks bodies over https: current clients send them in chunks with a checksum as a
    trailer."""
    os.environ["AWS_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL"].replace("http://", "https://")
    s3 = client()
    bucket = fresh_bucket(s3, "calls-tls")
    body = os.urandom(3 * MEBIBYTE)
    s3.put_object(Bucket=bucket, Key="k", Body=io.BytesIO(body))
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == body
    assert s3.head_object(Bucket=bucket, Key="k").get("ContentEncoding") is None
    s3.upload_fileobj(io.BytesIO(body * 6), bucket, "big")
    assert s3.get_object(Bucket=bucket, Key="big")["Body"].read() == body * 6


def side_by_side() -> None:
    """Has many clients use the same key: each reads one of the bodies completely."""
    bucket = fresh_bucket(client(), "calls-beside")
    bodies = [bytes([65 + n]) * (200_000 + n) for n in range(4)]
    client().put_object(Bucket=bucket, Key="k", Body=bodies[0])
    wrong = []

    def work(number: int) -> None:
        try:
            s3 = client()
            for _ in range(10):
                s3.put_object(Bucket=bucket, Key="k", Body=bodies[number])
                if s3.get_object(Bucket=bucket, Key="k")["Body"].read() not in bodies:
                    wrong.append("a body that was never put")
        except Exception as error:  # told by the main thread
            wrong.append(str(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


if __name__ == "__main__":
    globals()[sys.argv[1]]()
