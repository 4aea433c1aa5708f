"""Tests a new IAM user that may list and read one prefix, with the plain AWS CLI: all other
requests are rejected, with the principal, the operation and the resource."""

import json
import os
import pathlib
import subprocess
import urllib.error
import urllib.request

import pytest

from tests.trainyard_server import DEBIANS_AWS, TODAYS_AWS, WAIT_SECONDS_MAX, Server

POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": "arn:aws:s3:::team",
            "Condition": {"StringLike": {"s3:prefix": ["ann/*", "ann/"]}},
        },
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::team/ann/*"},
    ],
}

# The user's attempts, with the action and the resource in the error; None:
# the response has no text (HEAD).
REFUSED = [
    (
        "another-prefix",
        ["s3api", "list-objects-v2", "--bucket", "team", "--prefix", "bob/"],
        "s3:ListBucket",
        "arn:aws:s3:::team",
    ),
    ("the-whole-bucket", ["s3", "ls", "s3://team"], "s3:ListBucket", "arn:aws:s3:::team"),
    ("another-bucket", ["s3", "ls", "s3://other/ann/"], "s3:ListBucket", "arn:aws:s3:::other"),
    ("all-buckets", ["s3", "ls"], "s3:ListAllMyBuckets", "*"),
    (
        "anothers-object",
        ["s3api", "get-object", "--bucket", "team", "--key", "bob/secret", "FILE"],
        "s3:GetObject",
        "arn:aws:s3:::team/bob/secret",
    ),
    (
        "a-key-beside-the-prefix",
        ["s3api", "get-object", "--bucket", "team", "--key", "annex", "FILE"],
        "s3:GetObject",
        "arn:aws:s3:::team/annex",
    ),
    (
        "a-dotted-key",
        ["s3api", "get-object", "--bucket", "team", "--key", "ann/../bob/secret", "FILE"],
        None,
        None,
    ),
    (
        "head-of-anothers",
        ["s3api", "head-object", "--bucket", "team", "--key", "bob/secret"],
        "",
        "",
    ),
    ("put", ["s3", "cp", "HERE", "s3://team/ann/new"], "s3:PutObject", "arn:aws:s3:::team/ann/new"),
    (
        "overwrite",
        ["s3api", "put-object", "--bucket", "team", "--key", "ann/a", "--body", "HERE"],
        "s3:PutObject",
        "arn:aws:s3:::team/ann/a",
    ),
    ("delete", ["s3", "rm", "s3://team/ann/a"], "s3:DeleteObject", "arn:aws:s3:::team/ann/a"),
    (
        "delete-many",
        [
            "s3api",
            "delete-objects",
            "--bucket",
            "team",
            "--delete",
            '{"Objects": [{"Key": "ann/a"}]}',
        ],
        "s3:DeleteObject",
        "arn:aws:s3:::team/ann/a",
    ),
    (
        "copy-out",
        ["s3api", "copy-object", "--bucket", "other", "--key", "a", "--copy-source", "team/ann/a"],
        "s3:PutObject",
        "arn:aws:s3:::other/a",
    ),
    (
        "copy-in",
        [
            "s3api",
            "copy-object",
            "--bucket",
            "team",
            "--key",
            "ann/b",
            "--copy-source",
            "team/bob/secret",
        ],
        "s3:PutObject",
        "arn:aws:s3:::team/ann/b",
    ),
    (
        "multipart",
        ["s3api", "create-multipart-upload", "--bucket", "team", "--key", "ann/m"],
        "s3:PutObject",
        "arn:aws:s3:::team/ann/m",
    ),
    (
        "uploads",
        ["s3api", "list-multipart-uploads", "--bucket", "team"],
        "s3:ListBucketMultipartUploads",
        "arn:aws:s3:::team",
    ),
    ("a-bucket-of-ones-own", ["s3", "mb", "s3://anns"], "s3:CreateBucket", "arn:aws:s3:::anns"),
    (
        "remove-the-bucket",
        ["s3api", "delete-bucket", "--bucket", "team"],
        "s3:DeleteBucket",
        "arn:aws:s3:::team",
    ),
    (
        "a-bucket-policy",
        ["s3api", "put-bucket-policy", "--bucket", "team", "--policy", "{}"],
        "s3:PutBucketPolicy",
        "arn:aws:s3:::team",
    ),
    (
        "read-the-bucket-policy",
        ["s3api", "get-bucket-policy", "--bucket", "team"],
        "s3:GetBucketPolicy",
        "arn:aws:s3:::team",
    ),
    ("jobs", ["sagemaker", "list-training-jobs"], "sagemaker:ListTrainingJobs", "*"),
    (
        "a-job",
        ["sagemaker", "describe-training-job", "--training-job-name", "any"],
        "sagemaker:DescribeTrainingJob",
        "training-job/any",
    ),
    ("batch", ["batch", "describe-job-queues"], "batch:DescribeJobQueues", "*"),
    ("logs", ["logs", "describe-log-groups"], "logs:DescribeLogGroups", "log-group:"),
    ("metrics", ["cloudwatch", "list-metrics"], "cloudwatch:ListMetrics", "*"),
    (
        "more-rights",
        [
            "iam",
            "put-user-policy",
            "--user-name",
            "ann",
            "--policy-name",
            "p",
            "--policy-document",
            json.dumps(POLICY),
        ],
        "iam:PutUserPolicy",
        ":user/ann",
    ),
    (
        "more-keys",
        ["iam", "create-access-key", "--user-name", "owner"],
        "iam:CreateAccessKey",
        ":user/owner",
    ),
    (
        "a-role",
        [
            "sts",
            "assume-role",
            "--role-arn",
            "arn:aws:iam::{account}:role/Train",
            "--role-session-name",
            "session",
        ],
        "sts:AssumeRole",
        ":role/Train",
    ),
    ("the-audit-log", ["cloudtrail", "lookup-events"], "cloudtrail:LookupEvents", "*"),
]


class User:
    def __init__(self, server: Server, tmp_path: pathlib.Path) -> None:
        self.account = server.aws("sts", "get-caller-identity")["Account"]
        server.aws("iam", "create-user", "--user-name", "ann")
        server.aws(
            "iam",
            "put-user-policy",
            "--user-name",
            "ann",
            "--policy-name",
            "one-prefix",
            "--policy-document",
            json.dumps(POLICY),
        )
        key = server.aws("iam", "create-access-key", "--user-name", "ann")["AccessKey"]
        self.environment = server.environment() | {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }
        self.here, self.file = str(tmp_path / "here"), str(tmp_path / "file")
        with open(self.here, "w", encoding="utf-8") as file:
            file.write("ann's")

    def aws(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        given = [
            word.replace("{account}", self.account)
            if word not in ("HERE", "FILE")
            else {"HERE": self.here, "FILE": self.file}[word]
            for word in words
        ]
        return subprocess.run(
            [program, *given],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS_MAX,
        )


@pytest.fixture(scope="module")
def ann(server: Server, tmp_path_factory: pytest.TempPathFactory) -> User:
    s3 = server.boto("s3")
    for bucket in ("team", "other"):
        s3.create_bucket(Bucket=bucket)
    for key in ("ann/a", "ann/b c/d", "bob/secret", "annex"):
        s3.put_object(Bucket="team", Key=key, Body=key.encode())
    return User(server, tmp_path_factory.mktemp("ann"))


@pytest.mark.parametrize("program", [TODAYS_AWS, DEBIANS_AWS], ids=["todays", "debians"])
def test_the_prefix_is_listed_and_read(ann: User, program: str, tmp_path: pathlib.Path) -> None:
    assert "a" in ann.aws(program, "s3", "ls", "s3://team/ann/").stdout.split()
    done = ann.aws(program, "s3", "cp", "s3://team/ann/a", str(tmp_path / "a"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a").read_text() == "ann/a"
    done = ann.aws(program, "s3", "sync", "s3://team/ann/", str(tmp_path / "all"))
    assert done.returncode == 0 and (tmp_path / "all" / "b c" / "d").read_text() == "ann/b c/d", (
        done.stderr
    )
    identity = json.loads(ann.aws(program, "sts", "get-caller-identity", "--output", "json").stdout)
    assert identity["Arn"] == f"arn:aws:iam::{ann.account}:user/ann"


@pytest.mark.parametrize("name,words,action,resource", REFUSED, ids=[line[0] for line in REFUSED])
def test_all_other_requests_are_rejected(
    server: Server, ann: User, name: str, words: list[str], action: str | None, resource: str | None
) -> None:
    done = ann.aws(TODAYS_AWS, *words)
    assert done.returncode != 0 and not os.path.exists(ann.file), done.stdout
    if action:
        assert (
            "AccessDenied" in done.stderr
            and f"user/ann is not authorized to perform: {action} on resource: " in done.stderr
        ), done.stderr
        assert resource in done.stderr
    elif action == "":
        assert "403" in done.stderr and "Forbidden" in done.stderr, done.stderr
    assert "secret" not in done.stderr.replace("bob/secret", "")


def test_urls_of_the_user_have_the_users_rights(server: Server, ann: User) -> None:
    def read(url: str) -> bytes | int:
        try:
            return urllib.request.urlopen(url, timeout=60).read()
        except urllib.error.HTTPError as error:
            return error.code

    assert read(ann.aws(TODAYS_AWS, "s3", "presign", "s3://team/ann/a").stdout.strip()) == b"ann/a"
    assert read(ann.aws(TODAYS_AWS, "s3", "presign", "s3://team/bob/secret").stdout.strip()) == 403
    assert read(ann.aws(TODAYS_AWS, "s3", "presign", "s3://other/any").stdout.strip()) == 403


def test_the_attacks_changed_nothing(server: Server, ann: User) -> None:
    s3 = server.boto("s3")
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="team")["Contents"]] == [
        "ann/a",
        "ann/b c/d",
        "annex",
        "bob/secret",
    ]
    assert s3.get_object(Bucket="team", Key="ann/a")["Body"].read() == b"ann/a"
    assert (
        "Contents" not in s3.list_objects_v2(Bucket="other")
        and len(s3.list_buckets()["Buckets"]) == 2
    )
    assert [one["UserName"] for one in server.boto("iam").list_users()["Users"]] == ["ann"]


def test_revoked_rights_end_at_once(server: Server, ann: User) -> None:
    server.aws("iam", "delete-user-policy", "--user-name", "ann", "--policy-name", "one-prefix")
    done = ann.aws(TODAYS_AWS, "s3api", "get-object", "--bucket", "team", "--key", "ann/a", "FILE")
    assert done.returncode != 0 and "s3:GetObject" in done.stderr
