"""Checks claims of docs/compatibility.md about partial operations of S3."""

import datetime
import http.client
import json
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import EndpointProviderError

from tests.calls import fresh, refused
from tests.conformance.claims import Claim, Value, World, holds, rejects

PUBLIC = "public-read"
NO_VERSION = "3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrH"  # of the form of IDs


def of_bucket(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    return lambda world: {"Bucket": world.bucket} | more


def of_object(key: str = "key", **more: Any) -> Callable[[World], Mapping[str, Any]]:
    return lambda world: {"Bucket": world.bucket, "Key": key} | more


def copied(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    return lambda world: (
        {
            "Bucket": world.bucket,
            "Key": "copy",
            "CopySource": f"{world.bucket}/key",
        }
        | more
    )


LOCKS: tuple[dict[str, Any], ...] = (
    {"ObjectLockLegalHoldStatus": "ON"},
    {"ObjectLockMode": "GOVERNANCE"},
    {"ObjectLockRetainUntilDate": datetime.datetime(2040, 1, 1)},
    {"ObjectLockEventHold": "ON"},
)


def writes(method: str, arguments: Callable[..., Any]) -> list[Claim]:
    """Returns the parameters that operations which write objects reject."""
    return [
        rejects("s3", method, "AccessControlListNotSupported", arguments(ACL=PUBLIC)),
        rejects(
            "s3",
            method,
            "KMS",
            arguments(ServerSideEncryption="aws:kms", SSEKMSKeyId="arn:aws:kms:::key/k"),
        ),
        *(rejects("s3", method, "x-amz-object-lock", arguments(**lock)) for lock in LOCKS),
    ]


def list_versions(world: World) -> None:
    versions = world.client("s3").list_object_versions(Bucket=world.bucket, Prefix="key")
    assert [one["VersionId"] for one in versions["Versions"]] == ["null"]
    assert "DeleteMarkers" not in versions


def kept(setting: str, argument: str, value: Value, changed: Callable[[World], bool]) -> Claim:
    """Claims that a setting is read back, and that `changed` is false afterwards."""

    def check(world: World) -> None:
        s3 = world.client("s3")
        getattr(s3, "put_" + setting)(Bucket=world.bucket, **{argument: value})
        answer = getattr(s3, "get_" + setting)(Bucket=world.bucket)
        shown = answer.get(argument, answer)
        assert {name: shown.get(name) for name in value} == value
        assert not changed(world)

    return check


def got(world: World, path: str, host: str, signed: bool = True) -> tuple[int, str]:
    """Sends a GET whose Host header is AWS's; returns its status and body."""
    env = world.server.env
    endpoint = urllib.parse.urlsplit(env["AWS_ENDPOINT_URL"])
    request = AWSRequest("GET", env["AWS_ENDPOINT_URL"] + path, headers={"Host": host})
    if signed:
        keys = Credentials(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"])
        S3SigV4Auth(keys, "s3", env["AWS_DEFAULT_REGION"]).add_auth(request)
    connection = http.client.HTTPConnection(endpoint.netloc, timeout=60)
    try:
        connection.request("GET", path, headers=dict(request.headers.items()))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def no_website(world: World) -> None:
    """Claims that requests for a website are answered as requests for the bucket: without index and
    error documents, redirections, and access without credentials."""
    s3, host = world.client("s3"), f"{world.bucket}.s3-website-us-east-1.amazonaws.com"
    for name in ("index", "error"):
        s3.put_object(Bucket=world.bucket, Key=f"{name}.html", Body=f"the {name} page".encode())
    redirect = {"HostName": "example.org"}
    for website in (
        {"IndexDocument": {"Suffix": "index.html"}, "ErrorDocument": {"Key": "error.html"}},
        {"RedirectAllRequestsTo": redirect},
        {
            "IndexDocument": {"Suffix": "index.html"},
            "RoutingRules": [{"Condition": {"KeyPrefixEquals": "key"}, "Redirect": redirect}],
        },
    ):
        s3.put_bucket_website(Bucket=world.bucket, WebsiteConfiguration=website)
        shown = s3.get_bucket_website(Bucket=world.bucket)
        assert {name: shown.get(name) for name in website} == website
        status, body = got(world, f"/{world.bucket}", host)
        assert status == 200 and "<ListBucketResult" in body and "index page" not in body
        assert got(world, f"/{world.bucket}/key", host) == (200, "bytes")
        status, body = got(world, f"/{world.bucket}/missing", host)
        assert status == 404 and "<Code>NoSuchKey</Code>" in body and "error page" not in body
        assert got(world, f"/{world.bucket}/index.html", host, signed=False)[0] == 403


def no_acceleration(world: World) -> None:
    """Claims that requests for the accelerated endpoint are answered as all others, for any
    setting."""
    s3, host = world.client("s3"), f"{world.bucket}.s3-accelerate.amazonaws.com"
    for status in ("Enabled", "Suspended"):
        s3.put_bucket_accelerate_configuration(
            Bucket=world.bucket, AccelerateConfiguration={"Status": status}
        )
        assert s3.get_bucket_accelerate_configuration(Bucket=world.bucket)["Status"] == status
        assert got(world, f"/{world.bucket}/key", host) == (200, "bytes")
        assert s3.get_object(Bucket=world.bucket, Key="key")["Body"].read() == b"bytes"
    fast = world.server.boto("s3", config=Config(s3={"use_accelerate_endpoint": True}))
    with pytest.raises(EndpointProviderError, match="custom endpoint"):
        fast.get_object(Bucket=world.bucket, Key="key")


def object_is_encrypted(world: World) -> bool:
    return "ServerSideEncryption" in world.client("s3").put_object(
        Bucket=world.bucket, Key="plain", Body=b"x"
    )


def bucket_takes_public_acls(world: World) -> bool:
    call = world.client("s3").put_object_acl
    return refused(call, Bucket=world.bucket, Key="key", ACL=PUBLIC)[0] != (
        "AccessControlListNotSupported"
    )


def object_moved(world: World) -> bool:
    head = world.client("s3").head_object(Bucket=world.bucket, Key="key")
    return head.get("StorageClass", "STANDARD") != "STANDARD"


def object_is_gone(world: World) -> bool:
    return "Contents" not in world.client("s3").list_objects_v2(Bucket=world.bucket, Prefix="key")


def logging_writes(world: World) -> bool:
    s3 = world.client("s3")
    status = {"LoggingEnabled": {"TargetBucket": world.bucket, "TargetPrefix": "access/"}}
    s3.put_bucket_logging(Bucket=world.bucket, BucketLoggingStatus=status)
    assert s3.get_bucket_logging(Bucket=world.bucket)["LoggingEnabled"] == status["LoggingEnabled"]
    s3.list_objects_v2(Bucket=world.bucket)
    return "Contents" in s3.list_objects_v2(Bucket=world.bucket, Prefix="access/")


def no_access_logs(world: World) -> None:
    assert not logging_writes(world)


QUEUE = {
    "QueueConfigurations": [
        {
            "Id": "q",
            "QueueArn": "arn:aws:sqs:us-east-1:123456789012:q",
            "Events": ["s3:ObjectCreated:*"],
        }
    ]
}


def skipped_destinations(world: World) -> None:
    s3 = world.client("s3")
    s3.put_bucket_notification_configuration(
        Bucket=world.bucket, NotificationConfiguration=QUEUE, SkipDestinationValidation=True
    )
    answer = s3.get_bucket_notification_configuration(Bucket=world.bucket)
    assert answer["QueueConfigurations"] == QUEUE["QueueConfigurations"]


TRANSITION = {
    "Rules": [
        {
            "ID": "move",
            "Status": "Enabled",
            "Filter": {"Prefix": ""},
            "Transitions": [{"Days": 0, "StorageClass": "GLACIER"}],
            "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
        }
    ]
}
BLOCK = {
    "BlockPublicAcls": False,
    "IgnorePublicAcls": False,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": False,
}


def public_policy(world: World) -> Mapping[str, Any]:
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{world.bucket}/*",
    }
    return {
        "Bucket": world.bucket,
        "Policy": json.dumps({"Version": "2012-10-17", "Statement": statement}),
    }


CLAIMS: dict[str, list[Claim]] = {
    "s3 CreateBucket": [
        rejects(
            "s3",
            "create_bucket",
            "InvalidBucketAclWithObjectOwnership",
            lambda _: {"Bucket": fresh("acl"), "ACL": PUBLIC},
        ),
        rejects(
            "s3",
            "create_bucket",
            "x-amz-bucket-object-lock",
            lambda _: {"Bucket": fresh("lock"), "ObjectLockEnabledForBucket": True},
        ),
    ],
    "s3 ListObjectVersions": [list_versions],
    "s3 GetObject": [
        rejects("s3", "get_object", "NoSuchVersion", of_object(VersionId=NO_VERSION)),
    ],
    "s3 HeadObject": [rejects("s3", "head_object", "404", of_object(VersionId=NO_VERSION))],
    "s3 PutObject": [
        *writes("put_object", lambda **more: of_object("new", **more)),
        rejects("s3", "put_object", "write-offset", of_object("new", WriteOffsetBytes=5)),
    ],
    "s3 CopyObject": [
        *writes("copy_object", copied),
        rejects(
            "s3",
            "copy_object",
            "NoSuchVersion",
            lambda world: {
                "Bucket": world.bucket,
                "Key": "copy",
                "CopySource": f"{world.bucket}/key?versionId={NO_VERSION}",
            },
        ),
    ],
    "s3 DeleteObject": [
        rejects("s3", "delete_object", "NotImplemented", of_object(IfMatch='"etag"')),
        rejects("s3", "delete_object", "NoSuchVersion", of_object(VersionId=NO_VERSION)),
    ],
    "s3 CreateMultipartUpload": writes(
        "create_multipart_upload", lambda **more: of_object("new", **more)
    ),
    "s3 PutBucketAcl": [
        rejects("s3", "put_bucket_acl", "AccessControlListNotSupported", of_bucket(ACL=PUBLIC))
    ],
    "s3 PutObjectAcl": [
        rejects("s3", "put_object_acl", "AccessControlListNotSupported", of_object(ACL=PUBLIC))
    ],
    # its effect: test_bucket_settings.py
    "s3 PutBucketLifecycleConfiguration": [
        kept(
            "bucket_lifecycle_configuration",
            "LifecycleConfiguration",
            TRANSITION,
            lambda world: object_moved(world) or object_is_gone(world),
        )
    ],
    "s3 PutPublicAccessBlock": [
        kept("public_access_block", "PublicAccessBlockConfiguration", BLOCK, lambda _: False),
        rejects("s3", "put_bucket_policy", "AccessDenied", public_policy),
        lambda world: holds(not bucket_takes_public_acls(world)),
    ],
    "s3 PutBucketEncryption": [
        kept(
            "bucket_encryption",
            "ServerSideEncryptionConfiguration",
            {
                "Rules": [
                    {
                        "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"},
                        "BucketKeyEnabled": False,
                    }
                ]
            },
            object_is_encrypted,
        ),
        rejects(
            "s3",
            "put_bucket_encryption",
            "KMSMasterKeyID",
            of_bucket(
                ServerSideEncryptionConfiguration={
                    "Rules": [
                        {
                            "ApplyServerSideEncryptionByDefault": {
                                "SSEAlgorithm": "aws:kms",
                                "KMSMasterKeyID": "key",
                            }
                        }
                    ]
                }
            ),
        ),
    ],
    "s3 PutBucketLogging": [
        no_access_logs,
        rejects(
            "s3",
            "put_bucket_logging",
            "AccessControlListNotSupported",
            lambda world: {
                "Bucket": world.bucket,
                "BucketLoggingStatus": {
                    "LoggingEnabled": {
                        "TargetBucket": world.bucket,
                        "TargetPrefix": "",
                        "TargetGrants": [
                            {
                                "Grantee": {"Type": "CanonicalUser", "ID": "other"},
                                "Permission": "READ",
                            }
                        ],
                    }
                },
            },
        ),
    ],
    "s3 PutBucketNotificationConfiguration": [
        rejects(
            "s3",
            "put_bucket_notification_configuration",
            "Unable to validate the following destination configurations",
            of_bucket(NotificationConfiguration=QUEUE),
        ),
        skipped_destinations,
    ],
    "s3 PutBucketOwnershipControls": [
        kept(
            "bucket_ownership_controls",
            "OwnershipControls",
            {"Rules": [{"ObjectOwnership": "ObjectWriter"}]},
            bucket_takes_public_acls,
        )
    ],
    "s3 PutBucketWebsite": [
        kept(
            "bucket_website",
            "WebsiteConfiguration",
            {"RedirectAllRequestsTo": {"HostName": "example.org", "Protocol": "https"}},
            lambda _: False,
        ),
        no_website,
    ],
    "s3 PutBucketAccelerateConfiguration": [no_acceleration],
    "s3 PutBucketRequestPayment": [
        kept(
            "bucket_request_payment",
            "RequestPaymentConfiguration",
            {"Payer": "Requester"},
            object_is_gone,  # a read without x-amz-request-payer is answered
        )
    ],
}
