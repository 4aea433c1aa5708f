"""Tests bucket policies through boto3: they survive a crash, are evaluated together with the
policies of users, and cannot lock out the owner of the server."""

import json
from collections.abc import Callable
from typing import Any

import boto3
import botocore.exceptions
import pytest
from botocore.client import BaseClient
from botocore.config import Config

from tests.trainyard_server import Server


def statement(
    effect: str, principal: object, action: object, resource: object, **more: Any
) -> dict[str, Any]:
    return {"Effect": effect, "Principal": principal, "Action": action, "Resource": resource} | more


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def refused(call: Callable[..., Any], **arguments: Any) -> tuple[str, str]:
    with pytest.raises(botocore.exceptions.ClientError) as raised:
        call(**arguments)
    return raised.value.response["Error"]["Code"], raised.value.response["Error"].get("Message", "")


def user(server: Server, name: str, *statements: dict[str, Any]) -> tuple[str, BaseClient]:
    iam = server.boto("iam")
    arn = iam.create_user(UserName=name)["User"]["Arn"]
    if statements:
        iam.put_user_policy(
            UserName=name,
            PolicyName="p",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": list(statements)}),
        )
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return arn, boto3.client(
        "s3",
        endpoint_url=server.env["AWS_ENDPOINT_URL"],
        region_name="us-east-1",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
        config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}),
    )


EVERYTHING = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}


def test_put_get_status_delete_and_a_crash(start: Callable[..., Server]) -> None:
    server = start()
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="kept")
    assert refused(s3.get_bucket_policy, Bucket="kept")[0] == "NoSuchBucketPolicy"
    assert refused(s3.get_bucket_policy_status, Bucket="kept")[0] == "NoSuchBucketPolicy"
    s3.delete_bucket_policy(Bucket="kept")
    public = document(statement("Allow", "*", "s3:GetObject", "arn:aws:s3:::kept/*"))
    s3.put_bucket_policy(Bucket="kept", Policy=public)
    server.kill()
    server.start()
    s3 = server.boto("s3")
    assert s3.get_bucket_policy(Bucket="kept")["Policy"] == public
    assert s3.get_bucket_policy_status(Bucket="kept")["PolicyStatus"]["IsPublic"] is True
    s3.put_bucket_policy(
        Bucket="kept",
        Policy=document(statement("Deny", "*", "s3:GetObject", "arn:aws:s3:::kept/*")),
    )
    assert s3.get_bucket_policy_status(Bucket="kept")["PolicyStatus"]["IsPublic"] is False
    s3.delete_bucket(Bucket="kept")
    assert refused(s3.get_bucket_policy, Bucket="kept")[0] == "NoSuchBucket"
    s3.create_bucket(Bucket="kept")
    assert refused(s3.get_bucket_policy, Bucket="kept")[0] == "NoSuchBucketPolicy", (
        "a new bucket has none of the old one's"
    )


BAD = [
    ("no-json", "{"),
    ("empty", "{}"),
    (
        "no-principal",
        json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::bad/*"}
                ],
            }
        ),
    ),
    ("another-bucket", document(statement("Allow", "*", "s3:*", "arn:aws:s3:::other/*"))),
    ("every-bucket", document(statement("Allow", "*", "s3:*", "*"))),
    ("buckets-by-wildcard", document(statement("Allow", "*", "s3:*", "arn:aws:s3:::ba*"))),
    (
        "another-account",
        document(statement("Allow", {"AWS": "210987654321"}, "s3:*", "arn:aws:s3:::bad/*")),
    ),
    (
        "an-unknown-user",
        document(
            statement(
                "Allow", {"AWS": "arn:aws:iam::{account}:user/nobody"}, "s3:*", "arn:aws:s3:::bad/*"
            )
        ),
    ),
    ("another-service", document(statement("Allow", "*", "sagemaker:*", "arn:aws:s3:::bad/*"))),
    (
        "an-unknown-condition",
        document(
            statement(
                "Allow",
                "*",
                "s3:*",
                "arn:aws:s3:::bad/*",
                Condition={"Likes": {"aws:username": "a"}},
            )
        ),
    ),
    ("too-large", document(statement("Allow", "*", "s3:*", "arn:aws:s3:::bad/" + "x" * 21_000))),
    ("many-statements", document(*[statement("Allow", "*", "s3:*", "arn:aws:s3:::bad/*")] * 600)),
    ("deep", "[" * 200 + "]" * 200),
]


@pytest.mark.parametrize("name,policy", BAD, ids=[line[0] for line in BAD])
def test_an_invalid_document_is_rejected(server: Server, name: str, policy: str) -> None:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="bad")
    policy = policy.replace("{account}", server.boto("sts").get_caller_identity()["Account"])
    assert refused(s3.put_bucket_policy, Bucket="bad", Policy=policy)[0] == "MalformedPolicy"
    assert refused(s3.get_bucket_policy, Bucket="bad")[0] == "NoSuchBucketPolicy"


def test_a_bucket_policy_is_evaluated_with_the_policies_of_users(server: Server) -> None:
    owner = server.boto("s3")
    owner.create_bucket(Bucket="shared")
    owner.put_object(Bucket="shared", Key="in/a", Body=b"a")
    owner.put_object(Bucket="shared", Key="out/b", Body=b"b")
    ann_arn, ann = user(server, "policy-ann")
    _, bob = user(server, "policy-bob", EVERYTHING)
    assert refused(ann.get_object, Bucket="shared", Key="in/a")[0] == "AccessDenied"
    owner.put_bucket_policy(
        Bucket="shared",
        Policy=document(
            statement("Allow", {"AWS": ann_arn}, "s3:GetObject", "arn:aws:s3:::shared/in/*"),
            statement(
                "Allow",
                {"AWS": ann_arn},
                "s3:ListBucket",
                "arn:aws:s3:::shared",
                Condition={"StringLike": {"s3:prefix": "in/*"}},
            ),
            statement("Deny", "*", ["s3:DeleteObject", "s3:PutObject"], "arn:aws:s3:::shared/in/*"),
        ),
    )
    assert ann.get_object(Bucket="shared", Key="in/a")["Body"].read() == b"a"
    assert [
        one["Key"] for one in ann.list_objects_v2(Bucket="shared", Prefix="in/")["Contents"]
    ] == ["in/a"]
    for call, arguments in (
        (ann.get_object, {"Key": "out/b"}),
        (ann.put_object, {"Key": "in/c", "Body": b""}),
        (ann.list_objects_v2, {}),
        (ann.list_objects_v2, {"Prefix": "out/"}),
        (ann.delete_object, {"Key": "in/a"}),
        (ann.create_multipart_upload, {"Key": "in/d"}),
        (ann.copy_object, {"Key": "out/c", "CopySource": "shared/in/a"}),
        (ann.copy_object, {"Key": "in/c", "CopySource": "shared/out/b"}),
        (
            ann.put_bucket_policy,
            {"Policy": document(statement("Allow", "*", "s3:*", "arn:aws:s3:::shared/*"))},
        ),
        (ann.get_bucket_policy, {}),
        (ann.get_bucket_policy_status, {}),
        (ann.delete_bucket_policy, {}),
    ):
        assert refused(call, Bucket="shared", **arguments)[0] == "AccessDenied", (call, arguments)
    code, message = refused(bob.put_object, Bucket="shared", Key="in/c", Body=b"")
    assert (
        code == "AccessDenied"
        and "explicit deny in a resource-based policy" in message
        and "user/policy-bob" in message
    )
    assert (
        refused(
            bob.delete_objects,
            Bucket="shared",
            Delete={"Objects": [{"Key": "out/b"}, {"Key": "in/a"}]},
        )[0]
        == "AccessDenied"
    )
    bob.put_object(Bucket="shared", Key="out/c", Body=b"")
    assert owner.get_object(Bucket="shared", Key="out/b")["Body"].read() == b"b"


def test_a_bucket_policy_can_lock_out_all_except_the_owner(server: Server) -> None:
    owner = server.boto("s3")
    owner.create_bucket(Bucket="locked")
    _, bob = user(server, "locked-bob", EVERYTHING)
    bob.put_bucket_policy(
        Bucket="locked",
        Policy=document(
            statement("Deny", "*", "s3:*", ["arn:aws:s3:::locked", "arn:aws:s3:::locked/*"])
        ),
    )
    for call, arguments in (
        (bob.list_objects_v2, {}),
        (bob.put_object, {"Key": "k", "Body": b""}),
        (bob.delete_bucket_policy, {}),
        (bob.delete_bucket, {}),
        (
            bob.put_bucket_policy,
            {"Policy": document(statement("Allow", "*", "s3:*", "arn:aws:s3:::locked"))},
        ),
    ):
        assert refused(call, Bucket="locked", **arguments)[0] == "AccessDenied", call
    bob.create_bucket(Bucket="not-locked")
    owner.delete_bucket_policy(Bucket="locked")
    bob.put_object(Bucket="locked", Key="k", Body=b"")


def test_conditions_and_unsigned_requests(server: Server) -> None:
    import urllib.error
    import urllib.request

    owner = server.boto("s3")
    owner.create_bucket(Bucket="conditional")
    owner.put_object(Bucket="conditional", Key="k", Body=b"x")
    _, ann = user(server, "condition-ann")
    for condition, allowed in (
        ({"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}, True),
        ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, False),
        ({"Bool": {"aws:SecureTransport": "true"}}, False),
        ({"StringEquals": {"aws:username": "condition-ann"}}, True),
    ):
        owner.put_bucket_policy(
            Bucket="conditional",
            Policy=document(
                statement(
                    "Allow", "*", "s3:GetObject", "arn:aws:s3:::conditional/*", Condition=condition
                )
            ),
        )
        if allowed:
            ann.get_object(Bucket="conditional", Key="k")
        else:
            assert refused(ann.get_object, Bucket="conditional", Key="k")[0] == "AccessDenied"
    owner.put_bucket_policy(
        Bucket="conditional",
        Policy=document(statement("Allow", "*", "s3:GetObject", "arn:aws:s3:::conditional/*")),
    )
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(server.env["AWS_ENDPOINT_URL"] + "/conditional/k")
    assert raised.value.code == 403, (
        "requests without a signature are refused, whatever a policy says"
    )
