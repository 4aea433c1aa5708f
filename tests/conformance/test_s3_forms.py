"""Tests uploads by browsers' forms: boto3 signs the policy, and each attempt to exceed the signed
policy is rejected."""

import base64
import email.message
import json
import os
import re
import socket
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.config import Config

from tests.trainyard_server import Server

MEBIBYTE = 1 << 20
FORMS = Config(
    signature_version="s3v4", retries={"max_attempts": 0}, s3={"addressing_style": "path"}
)


@pytest.fixture(scope="module")
def s3(server: Server) -> BaseClient:
    one = server.boto("s3", config=FORMS)
    one.create_bucket(Bucket="forms")
    one.put_object(Bucket="forms", Key="secret", Body=b"the secret")
    return one


def encoded(
    fields: Sequence[tuple[str, str]], file: bytes, file_name: str = "a.txt", end: str = "--"
) -> tuple[bytes, str]:
    """Encodes a form as browsers do."""
    boundary = uuid.uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields
    ]
    if file is not None:
        parts.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="file";'
            f' filename="{file_name}"\r\nContent-Type: text/plain\r\n\r\n'.encode()
            + file
            + b"\r\n"
        )
    return (
        b"".join(parts) + f"--{boundary}{end}\r\n".encode(),
        f"multipart/form-data; boundary={boundary}",
    )


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: object) -> None:
        return None


def send(
    url: str,
    fields: Mapping[str, str] | Sequence[tuple[str, str]],
    file: bytes,
    headers: dict[str, str] | None = None,
    **more: Any,
) -> tuple[int, email.message.Message, str]:
    """Returns status, headers, and the error's code or the whole body."""
    body, content_type = encoded(
        list(fields.items()) if isinstance(fields, Mapping) else fields, file, **more
    )
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": content_type} | (headers or {}), method="POST"
    )
    try:
        answer = urllib.request.build_opener(NoRedirect).open(request, timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    text = answer.read().decode()
    code = re.search("<Code>(.*)</Code>", text)
    return answer.status, answer.headers, code[1] if code else text


def test_uploads_as_boto3_presigns_them(s3: BaseClient) -> None:
    form = s3.generate_presigned_post(
        "forms",
        "up/${filename}",
        Fields={"Content-Type": "text/plain", "x-amz-meta-colour": "blue"},
        Conditions=[
            {"Content-Type": "text/plain"},
            ["starts-with", "$x-amz-meta-colour", "b"],
            ["content-length-range", 1, 40 * MEBIBYTE],
        ],
    )
    assert send(form["url"], form["fields"], b"by form", file_name="first.txt")[0] == 204
    got = s3.get_object(Bucket="forms", Key="up/first.txt")
    assert (
        got["Body"].read() == b"by form"
        and got["ContentType"] == "text/plain"
        and got["Metadata"] == {"colour": "blue"}
    )
    large = os.urandom(30 * MEBIBYTE)
    status, headers, _ = send(form["url"], form["fields"], large, file_name="large")
    assert (
        status == 204 and headers["ETag"] == s3.head_object(Bucket="forms", Key="up/large")["ETag"]
    )
    assert s3.get_object(Bucket="forms", Key="up/large")["Body"].read() == large


def test_a_form_selects_its_response(s3: BaseClient) -> None:
    def post(**fields: str) -> tuple[int, email.message.Message, str]:
        form = s3.generate_presigned_post(
            "forms",
            "chosen",
            Fields=fields,
            Conditions=[{name: value} for name, value in fields.items()],
        )
        return send(form["url"], form["fields"], b"x")

    assert post(success_action_status="200")[0] == 200
    status, _, body = post(success_action_status="201")
    assert status == 201 and "<Key>chosen</Key>" in body and "<Bucket>forms</Bucket>" in body
    status, headers, _ = post(success_action_redirect="http://example.org/done")
    there = urllib.parse.urlsplit(headers["Location"])
    assert (
        status == 303
        and there.netloc == "example.org"
        and urllib.parse.parse_qs(there.query)["key"] == ["chosen"]
    )
    assert post(success_action_redirect="http://example.org/\r\nSet-Cookie: a=b")[0] == 204


def test_a_user_uploads_with_the_users_own_rights_at_the_time_of_use(
    server: Server, s3: BaseClient
) -> None:
    iam = server.boto("iam")
    iam.create_user(UserName="poster")
    key = iam.create_access_key(UserName="poster")["AccessKey"]
    poster = server.boto("s3", config=FORMS)
    (
        poster._request_signer._credentials.access_key,
        poster._request_signer._credentials.secret_key,
    ) = (
        key["AccessKeyId"],
        key["SecretAccessKey"],
    )
    form = poster.generate_presigned_post("forms", "poster/a")
    assert send(form["url"], form["fields"], b"x")[::2] == (403, "AccessDenied")
    iam.put_user_policy(
        UserName="poster",
        PolicyName="p",
        PolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": "s3:PutObject",
                        "Resource": "arn:aws:s3:::forms/poster/*",
                    }
                ],
            }
        ),
    )
    assert send(form["url"], form["fields"], b"x")[0] == 204
    elsewhere = poster.generate_presigned_post("forms", "elsewhere")
    assert send(elsewhere["url"], elsewhere["fields"], b"x")[::2] == (403, "AccessDenied")
    iam.delete_user_policy(UserName="poster", PolicyName="p")
    assert send(form["url"], form["fields"], b"x")[::2] == (403, "AccessDenied")


def changed(fields: dict[str, str], **changes: str | None) -> dict[str, str]:
    return {name: value for name, value in (fields | changes).items() if value is not None}


def other_policy(fields: dict[str, str], **changes: Any) -> dict[str, str]:
    policy = json.loads(base64.b64decode(fields["policy"])) | changes
    return changed(fields, policy=base64.b64encode(json.dumps(policy).encode()).decode())


# What is done to a valid form for "up/a" (at most 1000 bytes), and the error.
# The first table changes fields.
HOSTILE = [
    ("another-key", lambda f: changed(f, key="secret"), 403, "AccessDenied"),
    ("a-key-beside", lambda f: changed(f, key="upper"), 403, "AccessDenied"),
    ("no-key", lambda f: changed(f, key=None), 400, "InvalidArgument"),
    ("no-policy", lambda f: changed(f, policy=None), 403, "AccessDenied"),
    ("no-signature", lambda f: changed(f, **{"x-amz-signature": None}), 400, "InvalidArgument"),
    ("no-fields", lambda f: {}, 403, "AccessDenied"),
    (
        "a-later-end",
        lambda f: other_policy(f, expiration="2999-01-01T00:00:00Z"),
        403,
        "SignatureDoesNotMatch",
    ),
    ("no-conditions", lambda f: other_policy(f, conditions=[]), 403, "SignatureDoesNotMatch"),
    (
        "another-date",
        lambda f: changed(f, **{"x-amz-date": "20200101T000000Z"}),
        400,
        "AuthorizationHeaderMalformed",
    ),
    (
        "another-day",
        lambda f: changed(
            f,
            **{
                "x-amz-date": "20200101T000000Z",
                "x-amz-credential": f["x-amz-credential"].replace(f["x-amz-date"][:8], "20200101"),
            },
        ),
        403,
        "AccessDenied",
    ),
    (
        "another-region",
        lambda f: changed(
            f, **{"x-amz-credential": f["x-amz-credential"].replace("/s3/", "x/s3/")}
        ),
        403,
        "SignatureDoesNotMatch",
    ),
    (
        "another-service",
        lambda f: changed(
            f, **{"x-amz-credential": f["x-amz-credential"].replace("/s3/", "/sts/")}
        ),
        400,
        "AuthorizationHeaderMalformed",
    ),
    (
        "a-traversing-region",
        lambda f: changed(f, **{"x-amz-credential": "A/20261120/../s3/aws4_request"}),
        400,
        "AuthorizationHeaderMalformed",
    ),
    (
        "another-algorithm",
        lambda f: changed(f, **{"x-amz-algorithm": "AWS4-ECDSA-P256-SHA256"}),
        400,
        "AuthorizationHeaderMalformed",
    ),
    ("a-made-up-token", lambda f: changed(f, **{"x-amz-security-token": "x"}), 400, "InvalidToken"),
    ("a-copy", lambda f: changed(f, **{"x-amz-copy-source": "/forms/secret"}), 403, "AccessDenied"),
    ("more-metadata", lambda f: changed(f, **{"x-amz-meta-a": "b"}), 403, "AccessDenied"),
    ("an-acl", lambda f: changed(f, acl="public-read"), 403, "AccessDenied"),
    (
        "a-redirect",
        lambda f: changed(f, success_action_redirect="http://elsewhere/"),
        403,
        "AccessDenied",
    ),
    (
        "a-version-2-signature",
        lambda f: changed(f, AWSAccessKeyId="x", signature="y"),
        400,
        "InvalidRequest",
    ),
    (
        "a-large-field",
        lambda f: changed(f, **{"x-ignore-me": "x" * 30_000}),
        400,
        "MaxPostPreDataLengthExceededError",
    ),
    (
        "many-fields",
        lambda f: changed(f, **{f"x-ignore-{n}": "" for n in range(200)}),
        400,
        "MaxPostPreDataLengthExceededError",
    ),
    ("a-key-twice", lambda f: list(f.items()) + [("Key", "up/b")], 400, "MalformedPOSTRequest"),
    (
        "not-utf-8",
        lambda f: list(f.items()) + [("x-ignore-a", "\udcff")],
        400,
        "MalformedPOSTRequest",
    ),
]


@pytest.mark.parametrize("name,change,status,code", HOSTILE, ids=[line[0] for line in HOSTILE])
def test_a_changed_form_is_refused(
    s3: BaseClient, name: str, change: Callable[..., Any], status: int, code: str
) -> None:
    form = s3.generate_presigned_post(
        "forms", "up/${filename}", Conditions=[["content-length-range", 1, 1000]]
    )
    fields = change(form["fields"])
    if name == "not-utf-8":
        body, content_type = encoded([one for one in fields if one[0] != "x-ignore-a"], b"x")
        part = (
            f"--{content_type.split('=')[1]}\r\nContent-Disposition: form-data;"
            ' name="x-ignore-a"\r\n\r\n'.encode()
            + b"\xff\r\n"
        )
        try:
            urllib.request.urlopen(
                urllib.request.Request(
                    form["url"], data=part + body, headers={"Content-Type": content_type}
                )
            )
            raise AssertionError("it was taken")
        except urllib.error.HTTPError as error:
            assert (error.status, code in error.read().decode()) == (status, True)
    else:
        assert send(form["url"], fields, b"x", file_name="hostile")[::2] == (status, code)
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket="forms").get("Contents", [])]
    assert not any("hostile" in key or key in ("upper", "up/b") for key in keys), keys
    assert s3.get_object(Bucket="forms", Key="secret")["Body"].read() == b"the secret"


@pytest.mark.parametrize(
    "size,status,code",
    [
        (0, 400, "EntityTooSmall"),
        (1001, 400, "EntityTooLarge"),
        (5 * MEBIBYTE, 400, "EntityTooLarge"),
    ],
)
def test_size_limits_of_forms_are_enforced(
    s3: BaseClient, size: int, status: int, code: str
) -> None:
    form = s3.generate_presigned_post(
        "forms", "sized", Conditions=[["content-length-range", 1, 1000]]
    )
    assert send(form["url"], form["fields"], b"x" * size)[::2] == (status, code)
    assert "sized" not in [
        one["Key"] for one in s3.list_objects_v2(Bucket="forms").get("Contents", [])
    ]


def test_other_addresses_and_headers_are_refused(s3: BaseClient) -> None:
    form = s3.generate_presigned_post("forms", "up/other")
    assert send(form["url"] + "2", form["fields"], b"x")[0] == 403, "another bucket"
    assert send(form["url"] + "/key", form["fields"], b"x")[::2] == (403, "AccessDenied")
    assert send(form["url"], form["fields"], b"x", headers={"x-amz-acl": "private"})[::2] == (
        403,
        "AccessDenied",
    )
    assert send(form["url"], form["fields"], None)[::2] == (400, "MalformedPOSTRequest")
    assert send(
        form["url"],
        form["fields"],
        b"x",
        headers={"Content-Type": "multipart/form-data; boundary=never-sent"},
    )[::2] == (400, "MalformedPOSTRequest")
    assert not s3.list_objects_v2(Bucket="forms", Prefix="up/other").get("Contents")


def test_a_truncated_form_stores_nothing_and_delays_no_other(
    s3: BaseClient, server: Server
) -> None:
    form = s3.generate_presigned_post("forms", "up/cut")
    body, content_type = encoded(list(form["fields"].items()), b"x" * 1000)
    host, port = server.listen.rsplit(":", 1)
    held = []
    for sent in (10, len(body) // 3, len(body) - 500, len(body) - 5):
        one = socket.create_connection((host, int(port)))
        one.sendall(
            f"POST /forms HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length:"
            f" {len(body)}\r\n\r\n".encode()
            + body[:sent]
        )
        held.append(one)
    assert send(form["url"], form["fields"], b"whole")[0] == 204, "others are served"
    for one in held:
        one.close()
    assert s3.get_object(Bucket="forms", Key="up/cut")["Body"].read() == b"whole"
