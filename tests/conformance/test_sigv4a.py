"""Tests SigV4a (AWS4-ECDSA-P256-SHA256) with signatures of AWS's common runtime: from boto3, and
single requests with each possible error."""

import base64
import datetime
import io
import os
import re
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import awscrt.auth
import awscrt.http
import boto3
import botocore.exceptions
import pytest
from botocore.client import BaseClient
from botocore.config import Config

from tests import ecdsa_chunks
from tests.trainyard_server import Server

ALGORITHM = "AWS4-ECDSA-P256-SHA256"


def client(server: Server, service: str, region_set: str, signature: str) -> BaseClient:
    return server.boto(
        service,
        config=Config(
            signature_version=signature,
            sigv4a_signing_region_set=region_set,
            retries={"max_attempts": 0},
            s3={"addressing_style": "path"},
        ),
    )


@pytest.fixture(scope="module")
def bucket(server: Server) -> str:
    server.boto("s3").create_bucket(Bucket="asymmetric")
    return "asymmetric"


@pytest.mark.parametrize("region_set", ["*", "eu-west-1", "us-*", "ap-south-1,us-east-1"])
def test_s3_of_boto3(server: Server, bucket: str, region_set: str) -> None:
    s3 = client(server, "s3", region_set, "s3v4a")
    sent = []
    s3.meta.events.register(
        "before-send.s3.*",
        lambda request, **_: sent.append(request.headers.get("Authorization", b"")),
    )
    body = os.urandom(100_000)
    s3.put_object(Bucket=bucket, Key="a b/c", Body=body)
    assert s3.get_object(Bucket=bucket, Key="a b/c")["Body"].read() == body
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket, Prefix="a b/")["Contents"]] == [
        "a b/c"
    ]
    s3.upload_fileobj(io.BytesIO(body * 100), bucket, "parts")
    assert s3.head_object(Bucket=bucket, Key="parts")["ContentLength"] == len(body) * 100
    assert sent and all(str(one).lstrip("b'").startswith(ALGORITHM) for one in sent), sent[:3]


def test_signature_version_2_is_refused_with_what_to_change(server: Server, bucket: str) -> None:
    url = client(server, "s3", None, "s3").generate_presigned_url(
        "get_object", Params={"Bucket": bucket, "Key": "x"}
    )
    assert "AWSAccessKeyId=" in url
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, timeout=60)
    answer = refused.value.read().decode()
    assert (
        refused.value.code == 400
        and "InvalidRequest" in answer
        and "Please use AWS4-HMAC-SHA256." in answer
    ), answer


def test_presigned_urls_and_chunked_bodies(server: Server, bucket: str) -> None:
    s3 = client(server, "s3", "*", "s3v4a")
    s3.put_object(Bucket=bucket, Key="k", Body=b"by url")
    url = s3.generate_presigned_url(
        "get_object", Params={"Bucket": bucket, "Key": "k"}, ExpiresIn=60
    )
    assert "X-Amz-Region-Set=" in url and ALGORITHM in url
    assert urllib.request.urlopen(url).read() == b"by url"
    assert failure(url.replace("/k?", "/parts?")) == (403, "SignatureDoesNotMatch")
    over_tls = server.boto(
        "s3",
        endpoint_url=server.env["AWS_ENDPOINT_URL"].replace("http://", "https://"),
        verify=server.env.get("AWS_CA_BUNDLE"),
        config=Config(
            signature_version="s3v4a",
            sigv4a_signing_region_set="*",
            s3={"addressing_style": "path"},
        ),
    )
    over_tls.put_object(Bucket=bucket, Key="chunks", Body=io.BytesIO(b"x" * 200_000))
    assert s3.head_object(Bucket=bucket, Key="chunks")["ContentLength"] == 200_000


def test_other_services_and_a_users_own_keys(server: Server) -> None:
    assert client(server, "sts", "*", "v4a").get_caller_identity()["Arn"].endswith("/owner")
    iam = server.boto("iam")
    iam.create_user(UserName="curve")
    key = iam.create_access_key(UserName="curve")["AccessKey"]
    sagemaker = boto3.client(
        "sagemaker",
        endpoint_url=server.env["AWS_ENDPOINT_URL"],
        region_name="us-east-1",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
        config=Config(
            signature_version="v4a", sigv4a_signing_region_set="*", retries={"max_attempts": 0}
        ),
    )
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        sagemaker.list_training_jobs()
    assert refused.value.response["Error"][
        "Code"
    ] == "AccessDeniedException" and "user/curve" in str(refused.value)


# -- request by request


Request = tuple[str, str, dict[str, str]]  # method, path, fields


def signed(
    server: Server,
    target: str = "/asymmetric?list-type=2",
    region_set: str = "*",
    at: datetime.datetime | None = None,
    payload: str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    secret: str | None = None,
    method: str = "GET",
    query: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Request:
    request = awscrt.http.HttpRequest(method, target)
    request.headers.add("Host", server.listen)
    for name, value in (headers or {}).items():
        request.headers.add(name, value)
    kinds, body = awscrt.auth.AwsSignatureType, awscrt.auth.AwsSignedBodyHeaderType
    config = awscrt.auth.AwsSigningConfig(
        algorithm=awscrt.auth.AwsSigningAlgorithm.V4_ASYMMETRIC,
        signature_type=kinds.HTTP_REQUEST_QUERY_PARAMS if query else kinds.HTTP_REQUEST_HEADERS,
        credentials_provider=awscrt.auth.AwsCredentialsProvider.new_static(
            server.env["AWS_ACCESS_KEY_ID"], secret or server.env["AWS_SECRET_ACCESS_KEY"]
        ),
        region=region_set,
        service="s3",
        date=at or datetime.datetime.now(datetime.UTC),
        use_double_uri_encode=False,
        should_normalize_uri_path=False,
        signed_body_value=payload,
        signed_body_header_type=body.NONE if query else body.X_AMZ_CONTENT_SHA_256,
        expiration_in_seconds=60 if query else None,
    )
    awscrt.auth.aws_sign_request(request, config).result(60)
    return method, request.path, dict(request.headers)


def failure(
    url: str, headers: dict[str, str] | None = None, method: str = "GET", data: bytes | None = None
) -> tuple[int, str]:
    try:
        return urllib.request.urlopen(
            urllib.request.Request(url, headers=headers or {}, method=method, data=data), timeout=60
        ).status, ""
    except urllib.error.HTTPError as error:
        found = re.search(b"<Code>(.*?)</Code>", error.read())
        return error.code, found[1].decode() if found else ""


def send(server: Server, request: Request, **changes: Any) -> tuple[int, str]:
    method, path, headers = request
    headers = {name: value for name, value in (headers | changes).items() if value is not None}
    return failure(
        f"http://{server.listen}{path}", headers, method, b"" if method == "PUT" else None
    )


def header(request: Request, name: str) -> str:
    return next(value for key, value in request[2].items() if key.lower() == name.lower())


def hmac_of(request: Request) -> str:
    return header(request, "Authorization").replace(ALGORITHM, "AWS4-HMAC-SHA256")


AN_HOUR = datetime.timedelta(hours=1)
HOSTILE = [
    ("a-good-one", lambda s, r: send(s, r), (200, "")),
    (
        "regions-elsewhere",
        lambda s, r: send(s, signed(s, region_set="cn-*,ca-west-1")),
        (400, "AuthorizationHeaderMalformed"),
    ),
    (
        "another-region-set",
        lambda s, r: send(s, r, **{"X-Amz-Region-Set": "us-east-1"}),
        (403, "SignatureDoesNotMatch"),
    ),
    (
        "no-region-set",
        lambda s, r: send(s, r, **{"X-Amz-Region-Set": None}),
        (400, "AuthorizationHeaderMalformed"),
    ),
    (
        "a-long-region-set",
        lambda s, r: send(s, r, **{"X-Amz-Region-Set": "a," * 2000}),
        (400, "AuthorizationHeaderMalformed"),
    ),
    (
        "another-secret",
        lambda s, r: send(s, signed(s, secret="another")),
        (403, "SignatureDoesNotMatch"),
    ),
    (
        "an-old-one",
        lambda s, r: send(s, signed(s, at=datetime.datetime.now(datetime.UTC) - AN_HOUR)),
        (403, "RequestTimeTooSkewed"),
    ),
    (
        "one-of-tomorrow",
        lambda s, r: send(s, signed(s, at=datetime.datetime.now(datetime.UTC) + AN_HOUR)),
        (403, "RequestTimeTooSkewed"),
    ),
    (
        "another-key",
        lambda s, r: send(s, (r[0], "/asymmetric?list-type=2&prefix=x", r[2])),
        (403, "SignatureDoesNotMatch"),
    ),
    (
        "an-unsigned-header",
        lambda s, r: send(s, r, **{"x-amz-copy-source": "/asymmetric/k"}),
        (403, "AccessDenied"),
    ),
    (
        "a-signature-of-zeros",
        lambda s, r: send(
            s,
            r,
            Authorization=re.sub(
                "Signature=.*", "Signature=3006020100020100", header(r, "Authorization")
            ),
        ),
        (403, "SignatureDoesNotMatch"),
    ),
    (
        "no-der",
        lambda s, r: send(
            s,
            r,
            Authorization=re.sub(
                "Signature=.*", "Signature=" + "0" * 144, header(r, "Authorization")
            ),
        ),
        (403, "SignatureDoesNotMatch"),
    ),
    (
        "no-hex",
        lambda s, r: send(
            s, r, Authorization=re.sub("Signature=.*", "Signature=xyz", header(r, "Authorization"))
        ),
        (403, "SignatureDoesNotMatch"),
    ),
    (
        "as-an-hmac",
        lambda s, r: send(s, r, Authorization=hmac_of(r)),
        (400, "AuthorizationHeaderMalformed"),
    ),
    (
        "as-an-hmac-of-a-region",
        lambda s, r: send(s, r, Authorization=hmac_of(r).replace("/s3/", "/us-east-1/s3/")),
        (403, "SignatureDoesNotMatch"),
    ),
    (
        "no-chunks",
        lambda s, r: send(
            s,
            signed(
                s, "/asymmetric/x", method="PUT", payload="STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"
            ),
        ),
        (400, "IncompleteBody"),
    ),
    (
        "chunks-of-an-hmac",
        lambda s, r: send(
            s,
            signed(s, "/asymmetric/x", method="PUT", payload="STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        ),
        (400, "AuthorizationHeaderMalformed"),
    ),
    (
        "presigned",
        lambda s, r: send(s, signed(s, query=True, payload="UNSIGNED-PAYLOAD")),
        (200, ""),
    ),
    (
        "presigned-elsewhere",
        lambda s, r: send(s, signed(s, query=True, payload="UNSIGNED-PAYLOAD", region_set="cn-*")),
        (400, "AuthorizationHeaderMalformed"),
    ),
    (
        "presigned-too-late",
        lambda s, r: send(
            s,
            signed(
                s,
                query=True,
                payload="UNSIGNED-PAYLOAD",
                at=datetime.datetime.now(datetime.UTC) - AN_HOUR,
            ),
        ),
        (403, "AccessDenied"),
    ),
]


@pytest.mark.parametrize("name,attempt,answer", HOSTILE, ids=[line[0] for line in HOSTILE])
def test_each_invalid_signature_is_rejected(
    server: Server, bucket: str, name: str, attempt: Callable[..., Any], answer: tuple[int, str]
) -> None:
    assert attempt(server, signed(server)) == answer


# -- bodies in chunks

FIRST, SECOND, LAST = b"a" * ecdsa_chunks.CHUNK_BYTES_MIN, os.urandom(20_000), b"the end"


Change = Callable[[list[bytes]], list[bytes]]


def put_chunks(
    server: Server,
    key: str,
    chunks: Sequence[bytes],
    change: Change = lambda parts: parts,
    trailer: bool = False,
    secret: str | None = None,
) -> tuple[int, str]:
    """Uploads these chunks; returns the response. `change` receives and returns the parts of the
    signed body: the chunks, the last one, the trailers."""
    whole = b"".join(chunks)
    checksum = base64.b64encode(zlib.crc32(whole).to_bytes(4, "big")).decode()
    headers = {
        "Content-Encoding": "aws-chunked",
        "x-amz-decoded-content-length": str(len(whole)),
    } | ({"x-amz-trailer": "x-amz-checksum-crc32"} if trailer else {})
    method, path, headers = request = signed(
        server,
        f"/asymmetric/{key}",
        method="PUT",
        payload=ecdsa_chunks.PAYLOAD + ("-TRAILER" if trailer else ""),
        headers=headers,
    )
    seed = re.search("Signature=([0-9a-f]+)", header(request, "Authorization"))[1]
    private = ecdsa_chunks.derive_key(
        server.env["AWS_ACCESS_KEY_ID"], secret or server.env["AWS_SECRET_ACCESS_KEY"]
    )
    signer = ecdsa_chunks.Signer(private, header(request, "X-Amz-Date"), seed)
    parts = [signer.chunk(data) for data in [*chunks, b""]]
    parts.append(signer.trailers(x_amz_checksum_crc32=checksum) if trailer else b"\r\n")
    return failure(f"http://{server.listen}{path}", headers, method, b"".join(change(parts)))


@pytest.mark.parametrize("trailer", [False, True], ids=["plain", "trailer"])
@pytest.mark.parametrize(
    "chunks", [[], [LAST], [FIRST], [FIRST, SECOND, LAST]], ids=["none", "small", "one", "three"]
)
def test_chunks_that_are_signed(
    server: Server, bucket: str, chunks: list[Any], trailer: bool
) -> None:
    assert put_chunks(server, "signed-chunks", chunks, trailer=trailer) == (200, "")
    got = server.boto("s3").get_object(Bucket=bucket, Key="signed-chunks", ChecksumMode="ENABLED")
    assert got["Body"].read() == b"".join(chunks) and got.get("ContentEncoding", "") == ""
    assert not trailer or base64.b64decode(got["ChecksumCRC32"]) == zlib.crc32(
        b"".join(chunks)
    ).to_bytes(4, "big")


def other_signature(part: bytes) -> bytes:
    """Returns a well-formed signature of other data."""
    other = (
        ecdsa_chunks.Signer(ecdsa_chunks.derive_key("AKID", "another"), "20261120T094500Z", "00")
        .sign("PAYLOAD")
        .encode()
    )
    return re.sub(b"signature([=:])[0-9a-f*]+", lambda found: b"signature" + found[1] + other, part)


def unpadded(parts: list[bytes]) -> list[bytes]:
    return [
        re.sub(rb"\*+\r\n", b"\r\n", part) if index < 4 else part
        for index, part in enumerate(parts)
    ]


def padded_before(parts: list[bytes]) -> list[bytes]:
    return [re.sub(rb"=([0-9a-f]+)(\*+)\r\n", rb"=\2\1\r\n", part) for part in parts]


WRONG, CUT_OFF = (403, "SignatureDoesNotMatch"), (400, "IncompleteBody")
HOSTILE_BODIES = [
    (
        "another-signature",
        False,
        lambda parts: [parts[0], other_signature(parts[1]), *parts[2:]],
        WRONG,
    ),
    (
        "other-bytes",
        False,
        lambda parts: [parts[0].replace(b"\r\naa", b"\r\nab"), *parts[1:]],
        WRONG,
    ),
    ("another-order", False, lambda parts: [parts[1], parts[0], *parts[2:]], WRONG),
    ("one-left-out", False, lambda parts: [parts[0], *parts[2:]], WRONG),
    ("one-twice", False, lambda parts: [parts[0], *parts], WRONG),
    ("no-last-one", False, lambda parts: parts[:3], CUT_OFF),
    ("nothing-behind-the-last", False, lambda parts: parts[:4], CUT_OFF),
    (
        "no-signature",
        False,
        lambda parts: [re.sub(b";chunk-signature=[0-9a-f*]+", b"", parts[0]), *parts[1:]],
        WRONG,
    ),
    (
        "zeros",
        False,
        lambda parts: [re.sub(b"=[0-9a-f*]{144}", b"=" + b"0" * 144, parts[0]), *parts[1:]],
        WRONG,
    ),
    ("without-padding", False, unpadded, WRONG),
    ("padding-before", False, padded_before, WRONG),
    (
        "another-checksum",
        True,
        lambda parts: [*parts[:4], re.sub(b"crc32:....", b"crc32:AAAA", parts[4])],
        WRONG,
    ),
    (
        "another-seal-of-trailers",
        True,
        lambda parts: [*parts[:4], other_signature(parts[4])],
        WRONG,
    ),
    (
        "unsigned-trailers",
        True,
        lambda parts: [*parts[:4], parts[4].split(b"x-amz-trailer-sig")[0] + b"\r\n"],
        WRONG,
    ),
    ("one-trailer-more", True, lambda parts: [*parts[:4], b"x-amz-meta-a:b\r\n" + parts[4]], WRONG),
    ("no-trailers", True, lambda parts: [*parts[:4], b"\r\n"], WRONG),
]


@pytest.mark.parametrize(
    "name,trailer,change,answer", HOSTILE_BODIES, ids=[line[0] for line in HOSTILE_BODIES]
)
def test_each_invalid_chunk_signature_is_rejected(
    server: Server, bucket: str, name: str, trailer: bool, change: Change, answer: tuple[int, str]
) -> None:
    changed = []

    def change_once(parts: list[bytes]) -> list[bytes]:
        after = change(parts)
        changed.append(after != parts)
        return after

    # a signature of full width has no padding to change: then the upload is a good one
    while not any(changed):
        server.boto("s3").delete_object(Bucket=bucket, Key="hostile")
        got = put_chunks(server, "hostile", [FIRST, SECOND, LAST], change_once, trailer)
    assert got == answer
    with pytest.raises(botocore.exceptions.ClientError, match="404"):
        server.boto("s3").head_object(Bucket=bucket, Key="hostile")


def test_chunks_of_another_key_and_small_ones(server: Server, bucket: str) -> None:
    assert put_chunks(server, "hostile", [FIRST], secret="another") == WRONG
    assert put_chunks(server, "hostile", [b"a", b"b"]) == (403, "InvalidChunkSizeError")
