"""Tests settings of buckets: they survive restarts, are read back unchanged, and are rejected as on
AWS. Also tests the effects of CORS, lifecycle rules and the public access block."""

import datetime
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refused
from tests.conformance.test_bucket_policies import user
from tests.trainyard_server import Answer, Server, wait_for

CORS_RULE = {
    "ID": "pages",
    "AllowedHeaders": ["x-amz-*", "content-type"],
    "AllowedMethods": ["GET", "PUT"],
    "AllowedOrigins": ["https://*.example.org"],
    "ExposeHeaders": ["ETag"],
    "MaxAgeSeconds": 600,
}
LIFECYCLE_RULES: list[dict[str, Any]] = [
    {
        "ID": "logs",
        "Status": "Enabled",
        "Filter": {"Prefix": "logs/"},
        "Expiration": {"Days": 30},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
    },
    {
        "ID": "scratch",
        "Status": "Disabled",
        "Filter": {
            "And": {
                "Prefix": "scratch/",
                "Tags": [{"Key": "keep", "Value": "no"}, {"Key": "team", "Value": "blue"}],
                "ObjectSizeGreaterThan": 10,
            }
        },
        "Expiration": {"Date": datetime.datetime(2031, 1, 1, tzinfo=datetime.UTC)},
        "Transitions": [{"Days": 5, "StorageClass": "GLACIER"}],
        "NoncurrentVersionExpiration": {"NoncurrentDays": 3},
    },
]
BLOCK = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": False,
}
# setting -> (put's argument, its value, get's members, delete, code without it)
SETTINGS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "bucket_cors": (
        "CORSConfiguration",
        {"CORSRules": [CORS_RULE]},
        "delete_bucket_cors",
        "NoSuchCORSConfiguration",
    ),
    "bucket_lifecycle_configuration": (
        "LifecycleConfiguration",
        {"Rules": LIFECYCLE_RULES},
        "delete_bucket_lifecycle",
        "NoSuchLifecycleConfiguration",
    ),
    "bucket_encryption": (
        "ServerSideEncryptionConfiguration",
        {
            "Rules": [
                {
                    "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"},
                    "BucketKeyEnabled": True,
                }
            ]
        },
        "delete_bucket_encryption",
        "ServerSideEncryptionConfigurationNotFoundError",
    ),
    "public_access_block": (
        "PublicAccessBlockConfiguration",
        BLOCK,
        "delete_public_access_block",
        "NoSuchPublicAccessBlockConfiguration",
    ),
    "bucket_ownership_controls": (
        "OwnershipControls",
        {"Rules": [{"ObjectOwnership": "BucketOwnerPreferred"}]},
        "delete_bucket_ownership_controls",
        "OwnershipControlsNotFoundError",
    ),
    "bucket_website": (
        "WebsiteConfiguration",
        {
            "IndexDocument": {"Suffix": "index.html"},
            "ErrorDocument": {"Key": "error.html"},
            "RoutingRules": [
                {
                    "Condition": {"KeyPrefixEquals": "old/"},
                    "Redirect": {"ReplaceKeyPrefixWith": "new/"},
                }
            ],
        },
        "delete_bucket_website",
        "NoSuchWebsiteConfiguration",
    ),
    "bucket_logging": (
        "BucketLoggingStatus",
        {"LoggingEnabled": {"TargetBucket": "", "TargetPrefix": "access/"}},
        "",
        "",
    ),
    "bucket_notification_configuration": (
        "NotificationConfiguration",
        {"EventBridgeConfiguration": {}},
        "",
        "",
    ),
    "bucket_accelerate_configuration": (
        "AccelerateConfiguration",
        {"Status": "Enabled"},
        "",
        "",
    ),
    "bucket_request_payment": ("RequestPaymentConfiguration", {"Payer": "Requester"}, "", ""),
}


@pytest.fixture(scope="module")
def s3(server: Server) -> BaseClient:
    return server.boto("s3")


@pytest.fixture
def bucket(s3: BaseClient) -> str:
    name = fresh("settings")
    s3.create_bucket(Bucket=name)
    return name


Document = dict[str, Any]


def put(s3: BaseClient, setting: str, bucket: str, value: Document | None = None) -> None:
    argument, configuration, _, _ = SETTINGS[setting]
    configuration = json.loads(json.dumps(value or configuration, default=str))
    if setting == "bucket_logging":
        configuration["LoggingEnabled"]["TargetBucket"] = bucket
    getattr(s3, "put_" + setting)(Bucket=bucket, **{argument: configuration})


def read(s3: BaseClient, setting: str, bucket: str) -> dict[str, Any]:
    answer = getattr(s3, "get_" + setting)(Bucket=bucket)
    answer.pop("ResponseMetadata")
    return answer.get(SETTINGS[setting][0], answer)


def expected(setting: str, bucket: str) -> dict[str, Any]:
    if setting == "bucket_logging":
        return {"LoggingEnabled": {"TargetBucket": bucket, "TargetPrefix": "access/"}}
    if setting == "bucket_lifecycle_configuration":
        size = {"TransitionDefaultMinimumObjectSize": "all_storage_classes_128K"}
        return {"Rules": LIFECYCLE_RULES, **size}
    return SETTINGS[setting][1]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_is_put_read_and_deleted(s3: BaseClient, bucket: str, setting: str) -> None:
    argument, configuration, delete, absent = SETTINGS[setting]
    get = getattr(s3, "get_" + setting)
    if absent and setting != "bucket_ownership_controls":
        assert refused(get, Bucket=bucket)[0] == absent
    put(s3, setting, bucket)
    assert read(s3, setting, bucket) == expected(setting, bucket)
    missing = fresh("missing")
    assert refused(get, Bucket=missing)[0] == "NoSuchBucket"
    put_it = getattr(s3, "put_" + setting)
    assert refused(put_it, Bucket=missing, **{argument: configuration})[0] == "NoSuchBucket"
    wrong_owner = {"Bucket": bucket, "ExpectedBucketOwner": "999999999999"}
    assert refused(get, **wrong_owner)[0] == "AccessDenied"
    assert refused(put_it, **{argument: configuration}, **wrong_owner)[0] == "AccessDenied"
    if delete:
        assert refused(getattr(s3, delete), **wrong_owner)[0] == "AccessDenied"
        for _ in range(2):  # the second finds nothing, and succeeds too
            getattr(s3, delete)(Bucket=bucket)
        assert refused(get, Bucket=bucket)[0] == absent


def test_settings_survive_a_kill_and_end_with_the_bucket(start: Callable[..., Server]) -> None:
    server = start()
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="kept")
    for setting in SETTINGS:
        put(s3, setting, "kept")
    server.kill()
    server.start()
    s3 = server.boto("s3")
    for setting in SETTINGS:
        assert read(s3, setting, "kept") == expected(setting, "kept"), setting
    s3.delete_bucket(Bucket="kept")
    s3.create_bucket(Bucket="kept")
    for setting, (_, _, _, absent) in SETTINGS.items():
        get = getattr(s3, "get_" + setting)
        if setting == "bucket_ownership_controls":
            rules = get(Bucket="kept")["OwnershipControls"]["Rules"]
            assert rules == [{"ObjectOwnership": "BucketOwnerEnforced"}]
        elif absent:
            assert refused(get, Bucket="kept")[0] == absent
        else:
            assert read(s3, setting, "kept") in ({}, {"Payer": "BucketOwner"}), setting


def test_limits_of_counts(s3: BaseClient, bucket: str) -> None:
    rules = [{**LIFECYCLE_RULES[0], "ID": f"rule {number}"} for number in range(1001)]
    put(s3, "bucket_lifecycle_configuration", bucket, {"Rules": rules[:1000]})
    assert len(read(s3, "bucket_lifecycle_configuration", bucket)["Rules"]) == 1000
    assert (
        refused(
            s3.put_bucket_lifecycle_configuration,
            Bucket=bucket,
            LifecycleConfiguration={"Rules": rules},
        )[0]
        == "MalformedXML"
    )
    many = {"CORSRules": [CORS_RULE] * 101}
    assert refused(s3.put_bucket_cors, Bucket=bucket, CORSConfiguration=many)[0] == "MalformedXML"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<CORSConfiguration>",
        "<CORSConfiguration/>",
        "<a/>",
        "not XML",
        "\0",
        # What is inside is a configuration.
        "<CORS><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin>"
        "</CORSRule></CORS>",
        "<CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule>",
    ],
)
def test_documents_that_are_not_the_model(server: Server, bucket: str, body: str) -> None:
    s3 = server.boto("s3")
    s3.meta.events.register(
        "before-call.s3.PutBucketCors", lambda params, **_: params.update(body=body.encode())
    )
    code, _ = refused(s3.put_bucket_cors, Bucket=bucket, CORSConfiguration={"CORSRules": []})
    assert code == ("MalformedXML" if body else "MissingRequestBodyError")
    assert refused(s3.get_bucket_cors, Bucket=bucket)[0] == "NoSuchCORSConfiguration"


@pytest.mark.parametrize(
    "filters",
    [
        "<Filter><prefix>tmp/</prefix></Filter>",
        "<Filter>tmp/</Filter>",
        "<Filter><Prefix>a</Prefix><Prefix>b</Prefix></Filter>",
        "<Filter><Prefix>tmp/</Prefix></Filter><Filter/>",
        "<Filter/><filter><Prefix>tmp/</Prefix></filter>",
    ],
)
def test_a_misspelled_filter_is_not_about_all_objects(
    server: Server, bucket: str, filters: str
) -> None:
    s3 = server.boto("s3")

    def send(inside: str) -> None:
        body = (
            f"<LifecycleConfiguration><Rule><ID>a</ID>{inside}<Status>Enabled</Status>"
            "<Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>"
        )
        s3.meta.events.register(
            "before-call.s3.PutBucketLifecycleConfiguration",
            lambda params, **_: params.update(body=body.encode()),
            unique_id="body",
        )
        configuration = {"Rules": LIFECYCLE_RULES}
        try:
            s3.put_bucket_lifecycle_configuration(
                Bucket=bucket, LifecycleConfiguration=configuration
            )
        finally:
            s3.meta.events.unregister(
                "before-call.s3.PutBucketLifecycleConfiguration", unique_id="body"
            )

    assert refused(send, inside=filters)[0] == "MalformedXML"
    assert refused(s3.get_bucket_lifecycle_configuration, Bucket=bucket)[0] == (
        "NoSuchLifecycleConfiguration"
    )
    send("<Filter/>")  # means all objects, as on S3
    rule = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"][0]
    assert rule["Expiration"] == {"Days": 1}


def exchange(
    url: str, method: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(url, data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def preflight(
    url: str, origin: str, method: str, headers: str = ""
) -> tuple[int, dict[str, str], str]:
    requested = {"Origin": origin, "Access-Control-Request-Method": method}
    if headers:
        requested["Access-Control-Request-Headers"] = headers
    return exchange(url, "OPTIONS", requested)


def test_cors_of_preflights(s3: BaseClient, bucket: str, server: Server) -> None:
    url = f"{server.env['AWS_ENDPOINT_URL']}/{bucket}/some/key"
    status, _, text = preflight(url, "https://a.example.org", "GET")
    assert status == 403 and "CORS is not enabled for this bucket." in text
    put(s3, "bucket_cors", bucket)
    status, headers, text = preflight(
        url, "https://a.example.org", "PUT", "X-Amz-Date,Content-Type"
    )
    assert (status, text) == (200, "")
    assert headers["Access-Control-Allow-Origin"] == "https://a.example.org"
    assert headers["Access-Control-Allow-Methods"] == "GET, PUT"
    assert headers["Access-Control-Allow-Headers"] == "x-amz-date, content-type"
    assert headers["Access-Control-Expose-Headers"] == "ETag"
    assert headers["Access-Control-Max-Age"] == "600"
    assert headers["Access-Control-Allow-Credentials"] == "true"
    for origin, method, more in (
        ("https://a.example.com", "GET", ""),
        ("https://a.example.org", "DELETE", ""),
        ("https://a.example.org", "GET", "x-other"),
    ):
        status, headers, text = preflight(url, origin, method, more)
        assert status == 403 and "AccessForbidden" in text
        assert "Access-Control-Allow-Origin" not in headers
    assert exchange(url, "OPTIONS", {})[0] == 400
    assert exchange(url, "OPTIONS", {"Origin": "https://a.example.org"})[0] == 400


def test_cors_of_other_requests(s3: BaseClient, bucket: str) -> None:
    put(s3, "bucket_cors", bucket)
    s3.put_object(Bucket=bucket, Key="key", Body=b"bytes")
    reads = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "key"})
    writes = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "new"})
    lists = s3.generate_presigned_url("list_objects_v2", Params={"Bucket": bucket})
    ours, others = {"Origin": "https://a.example.org"}, {"Origin": "https://elsewhere"}
    for url, method, body in ((reads, "GET", None), (writes, "PUT", b"x"), (lists, "GET", None)):
        status, headers, _ = exchange(url, method, ours, body)
        assert (status, headers.get("Access-Control-Allow-Origin")) == (200, ours["Origin"])
        assert headers["Vary"].startswith("Origin")
        status, headers, _ = exchange(url, method, others, body)
        assert (status, headers.get("Access-Control-Allow-Origin")) == (200, None)
        assert "Access-Control-Allow-Origin" not in exchange(url, method, {}, body)[1]
    # A page may read the error, too.
    status, headers, _ = exchange(reads.replace("Signature=", "Signature=0"), "GET", ours)
    assert (status, headers.get("Access-Control-Allow-Origin")) == (403, ours["Origin"])


def test_lifecycle_rules_remove_objects(start: Callable[..., Server]) -> None:
    server = start()
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="data")
    for key in ("scratch/a", "scratch/b", "kept/a"):
        s3.put_object(Bucket="data", Key=key, Body=b"x")
    s3.put_object_tagging(
        Bucket="data", Key="scratch/b", Tagging={"TagSet": [{"Key": "keep", "Value": "yes"}]}
    )
    s3.put_object_tagging(
        Bucket="data", Key="scratch/a", Tagging={"TagSet": [{"Key": "keep", "Value": "no"}]}
    )
    rule = {
        "ID": "scratch",
        "Status": "Enabled",
        "Filter": {
            "And": {"Prefix": "scratch/", "Tags": [{"Key": "keep", "Value": "no"}]},
        },
        "Expiration": {"Date": "2020-01-01T00:00:00Z"},
    }
    s3.put_bucket_lifecycle_configuration(Bucket="data", LifecycleConfiguration={"Rules": [rule]})
    # Rules are applied when the server starts, and then every hour.
    server.stop()
    server.start()
    s3 = server.boto("s3")

    def keys() -> list[str]:
        return [one["Key"] for one in s3.list_objects_v2(Bucket="data")["Contents"]]

    wait_for(lambda: keys() == ["kept/a", "scratch/b"], "the rule to remove scratch/a")
    wait_for(lambda: "lifecycle rules were applied" in server.log_text(), "the line of the log")


def test_a_public_access_block_refuses_public_policies(s3: BaseClient, bucket: str) -> None:
    public = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": {
                "Effect": "Allow",
                "Principal": "*",
                "Action": "s3:GetObject",
                "Resource": f"arn:aws:s3:::{bucket}/*",
            },
        }
    )
    put(s3, "public_access_block", bucket)
    code, text = refused(s3.put_bucket_policy, Bucket=bucket, Policy=public)
    assert code == "AccessDenied" and "BlockPublicPolicy" in text
    s3.delete_public_access_block(Bucket=bucket)
    s3.put_bucket_policy(Bucket=bucket, Policy=public)


ACTIONS = {
    "bucket_cors": ("s3:GetBucketCORS", "s3:PutBucketCORS"),
    "bucket_lifecycle_configuration": (
        "s3:GetLifecycleConfiguration",
        "s3:PutLifecycleConfiguration",
    ),
    "bucket_encryption": ("s3:GetEncryptionConfiguration", "s3:PutEncryptionConfiguration"),
    "public_access_block": ("s3:GetBucketPublicAccessBlock", "s3:PutBucketPublicAccessBlock"),
    "bucket_ownership_controls": (
        "s3:GetBucketOwnershipControls",
        "s3:PutBucketOwnershipControls",
    ),
    "bucket_website": ("s3:GetBucketWebsite", "s3:PutBucketWebsite"),
    "bucket_logging": ("s3:GetBucketLogging", "s3:PutBucketLogging"),
    "bucket_notification_configuration": ("s3:GetBucketNotification", "s3:PutBucketNotification"),
    "bucket_accelerate_configuration": (
        "s3:GetAccelerateConfiguration",
        "s3:PutAccelerateConfiguration",
    ),
    "bucket_request_payment": ("s3:GetBucketRequestPayment", "s3:PutBucketRequestPayment"),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_setting_needs_its_action(
    server: Server, s3: BaseClient, bucket: str, setting: str
) -> None:
    reads, writes = ACTIONS[setting]
    put(s3, setting, bucket)

    def with_right(action: str) -> BaseClient:
        right = {"Effect": "Allow", "Action": action, "Resource": f"arn:aws:s3:::{bucket}"}
        return user(server, fresh("settings"), right)[1]

    reader, writer = with_right(reads), with_right(writes)
    assert read(reader, setting, bucket) == expected(setting, bucket)
    put(writer, setting, bucket)
    argument, configuration, delete, _ = SETTINGS[setting]
    call = getattr(reader, "put_" + setting)
    code, text = refused(call, Bucket=bucket, **{argument: configuration})
    assert code == "AccessDenied" and writes in text
    code, text = refused(getattr(writer, "get_" + setting), Bucket=bucket)
    assert code == "AccessDenied" and reads in text
    if delete:
        assert refused(getattr(reader, delete), Bucket=bucket)[0] == "AccessDenied"
        if setting != "bucket_website":  # which has an action of its own
            getattr(writer, delete)(Bucket=bucket)


def test_both_command_lines(aws: Callable[..., Answer]) -> None:
    name = fresh("cli-settings")
    aws("s3api", "create-bucket", "--bucket", name)
    rules = {"Rules": [LIFECYCLE_RULES[0]]}
    aws(
        "s3api",
        "put-bucket-lifecycle-configuration",
        "--bucket",
        name,
        "--lifecycle-configuration",
        json.dumps(rules),
    )
    assert (
        aws("s3api", "get-bucket-lifecycle-configuration", "--bucket", name)["Rules"]
        == rules["Rules"]
    )
    aws(
        "s3api",
        "put-bucket-cors",
        "--bucket",
        name,
        "--cors-configuration",
        json.dumps({"CORSRules": [CORS_RULE]}),
    )
    assert aws("s3api", "get-bucket-cors", "--bucket", name)["CORSRules"] == [CORS_RULE]
    aws("s3api", "delete-bucket-cors", "--bucket", name)
    answer = aws("s3api", "get-bucket-cors", "--bucket", name, check=False)
    assert answer.returncode != 0 and "NoSuchCORSConfiguration" in answer.stderr
    aws("s3", "website", f"s3://{name}", "--index-document", "index.html")
    assert aws("s3api", "get-bucket-website", "--bucket", name)["IndexDocument"] == {
        "Suffix": "index.html"
    }
