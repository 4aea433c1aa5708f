"""Lists attacks by requests: without a key, with signatures that have one error, with presigned
URLs, with others' temporary keys, and with the key of a user without permissions.

`attempt` is a function of the World, which returns (status, text). The server's log has the
rejected requests, by their request id; if the principal is known, the audit log has them too
(`more`: operation and resource)."""

import json

from tests.hostile import pages
from tests.hostile.rows import row
from tests.hostile.signer import Caller
from tests.hostile.table import AUDIT, Attack
from tests.hostile.world import (
    DESCRIBE,
    FORM,
    JSON,
    SECRET_OBJECT,
    Attempt,
    ago,
    describe,
    get,
)

UNSIGNED = (
    row(
        "describe-unsigned",
        "describe a job",
        "403 MissingAuthenticationToken",
        lambda w: w.plain("POST", "/", JSON, DESCRIBE),
    ),
    row(
        "create-unsigned",
        "create a job",
        "403 MissingAuthenticationToken",
        lambda w: w.plain(
            "POST", "/", JSON | {"X-Amz-Target": "SageMaker.CreateTrainingJob"}, b"{}"
        ),
    ),
    row(
        "logs-unsigned",
        "read a log",
        "403 MissingAuthenticationToken",
        lambda w: w.plain(
            "POST", "/", JSON | {"X-Amz-Target": "Logs_20140328.GetLogEvents"}, b"{}"
        ),
    ),
    row(
        "identity-unsigned",
        "query STS for its identity",
        "403 MissingAuthenticationToken",
        lambda w: w.plain("POST", "/", FORM, b"Action=GetCallerIdentity&Version=2011-06-15"),
    ),
    row(
        "user-unsigned",
        "make a user",
        "403 MissingAuthenticationToken",
        lambda w: w.plain(
            "POST", "/", FORM, b"Action=CreateUser&Version=2010-05-08&UserName=mallory"
        ),
    ),
    row(
        "web-identity",
        "assume a role with a web identity",
        "400 UnknownOperationException",
        lambda w: w.plain(
            "POST",
            "/",
            FORM,
            b"Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleSessionName=mallory",
        ),
    ),
    row(
        "preflight",
        "find out by CORS what is in a bucket",
        "403 AccessForbidden",
        lambda w: w.plain(
            "OPTIONS",
            SECRET_OBJECT,
            {"Origin": "https://mallory.example", "Access-Control-Request-Method": "GET"},
        ),
    ),
    row(
        "batch-unsigned",
        "describe Batch jobs",
        "403 (MissingAuthenticationToken|AccessDenied)",
        lambda w: w.plain(
            "POST", "/v1/describejobs", {"Content-Type": "application/json"}, b'{"jobs": []}'
        ),
    ),
    row(
        "campaign-unsigned",
        "start a campaign",
        "403 MissingAuthenticationToken",
        lambda w: w.plain("POST", "/", JSON | {"X-Amz-Target": "Trainyard.CreateCampaign"}, b"{}"),
    ),
    row(
        "shell-unsigned",
        "open a shell in a job",
        "403 MissingAuthenticationToken",
        lambda w: w.plain("GET", "/trainyard/shell?host=0&job=victim", {}),
    ),
    row(
        "get-unsigned",
        "read an object",
        "403 AccessDenied",
        lambda w: w.plain("GET", SECRET_OBJECT, {}),
    ),
    row(
        "put-unsigned",
        "write an object",
        "403 AccessDenied",
        lambda w: w.plain("PUT", SECRET_OBJECT, {}, b"changed"),
    ),
    row(
        "delete-unsigned",
        "delete an object",
        "403 AccessDenied",
        lambda w: w.plain("DELETE", SECRET_OBJECT, {}),
    ),
    row(
        "list-unsigned", "list a bucket", "403 AccessDenied", lambda w: w.plain("GET", "/yard", {})
    ),
    row(
        "gzip-unsigned",
        "have a body unpacked",
        "403 MissingAuthenticationToken",
        lambda w: w.plain(
            "POST", "/", JSON | {"Content-Encoding": "gzip"}, b"\x1f\x8b" + bytes(100)
        ),
    ),
    row(
        "huge-unsigned",
        "announce a body of a tebibyte",
        "403 MissingAuthenticationToken",
        lambda w: w.bytes(
            f"POST / HTTP/1.1\r\nHost: {w.server.listen}\r\nX-Amz-Target:"
            f" SageMaker.CreateTrainingJob\r\nContent-Length: {1 << 40}\r\n\r\n".encode()
        ),
    ),
)

SIGNATURES = (
    row(
        "unknown-key",
        "use an unknown key",
        "403 UnrecognizedClientException",
        lambda w: describe(w.anonymous),
    ),
    row(
        "unknown-key-s3",
        "read an object with it",
        "403 InvalidAccessKeyId",
        lambda w: get(w.anonymous),
    ),
    row(
        "wrong-secret",
        "guess the owner's secret",
        "403 InvalidSignatureException",
        lambda w: describe(w.guesser),
    ),
    row(
        "wrong-secret-s3",
        "read an object with it",
        "403 SignatureDoesNotMatch",
        lambda w: get(w.guesser),
    ),
    row(
        "empty-secret",
        "sign with an empty secret",
        "403 InvalidSignatureException",
        lambda w: describe(Caller(w.endpoint, w.keys | {"SecretAccessKey": ""})),
    ),
    row(
        "other-service",
        "use a signature for another service",
        "400 IncompleteSignatureException",
        lambda w: describe(w.owner, scope_service="logs"),
    ),
    row(
        "other-region",
        "begin a region of its own",
        "400 IncompleteSignatureException",
        lambda w: describe(w.owner, region="mars-north-1"),
    ),
    row(
        "old-signature",
        "repeat a request of an hour ago",
        "403 InvalidSignatureException",
        lambda w: describe(w.owner, at=ago(1)),
    ),
    row(
        "old-signature-s3",
        "repeat a read of an hour ago",
        "403 RequestTimeTooSkewed",
        lambda w: get(w.owner, at=ago(1)),
    ),
    row(
        "future-signature",
        "sign for tomorrow",
        "403 InvalidSignatureException",
        lambda w: describe(w.owner, at=ago(-24)),
    ),
    row(
        "body-changed",
        "change the body",
        "403 InvalidSignatureException",
        lambda w: describe(w.owner, sent_body=b'{"TrainingJobName": "another"}'),
    ),
    row(
        "target-changed",
        "change the operation",
        "403 InvalidSignatureException",
        lambda w: describe(w.owner, sent={"x-amz-target": "SageMaker.StopTrainingJob"}),
    ),
    row(
        "path-changed",
        "change the path",
        "403 SignatureDoesNotMatch",
        lambda w: w.owner.call("s3", "GET", "/yard/data/part-0", sent_path=SECRET_OBJECT),
    ),
    row(
        "method-changed",
        "change the method",
        "403 SignatureDoesNotMatch",
        lambda w: get(w.owner, sent_method="DELETE"),
    ),
    row(
        "host-changed",
        "change the host",
        "403 SignatureDoesNotMatch",
        lambda w: get(w.owner, sent={"host": "elsewhere:80"}),
    ),
    row(
        "date-changed",
        "change the date",
        "403 SignatureDoesNotMatch",
        lambda w: get(w.owner, sent={"x-amz-date": ago(0.1).strftime("%Y%m%dT%H%M%SZ")}),
    ),
    row(
        "copy-unsigned",
        "add an unsigned x-amz-copy-source",
        "403 AccessDenied",
        lambda w: w.owner.call(
            "s3", "PUT", "/yard/copy", unsigned={"x-amz-copy-source": SECRET_OBJECT}
        ),
    ),
    row(
        "acl-unsigned",
        "add an unsigned x-amz-acl",
        "403 AccessDenied",
        lambda w: w.owner.call("s3", "PUT", "/yard/copy", unsigned={"x-amz-acl": "public-read"}),
    ),
    row(
        "no-algorithm",
        "send an Authorization of another kind",
        "40[03] ",
        lambda w: w.plain("GET", SECRET_OBJECT, {"Authorization": "Basic cm9vdDpyb290"}),
    ),
    row(
        "empty-authorization",
        "send an empty Authorization",
        "40[03] ",
        lambda w: w.plain("GET", SECRET_OBJECT, {"Authorization": ""}),
    ),
)

PRESIGNED = (
    row(
        "presigned-copy",
        "have a presigned PUT copy an object",
        "403 AccessDenied",
        lambda w: w.plain(
            "PUT",
            "?".join(w.presigned("put_object", key="copy")),
            {"x-amz-copy-source": SECRET_OBJECT},
        ),
    ),
    row(
        "presigned-method",
        "delete with a presigned GET",
        "403 SignatureDoesNotMatch",
        lambda w: w.plain("DELETE", "?".join(w.presigned("get_object")), {}),
    ),
    row(
        "presigned-key",
        "read another object with a presigned GET",
        "403 SignatureDoesNotMatch",
        lambda w: w.plain(
            "GET", SECRET_OBJECT + "?" + w.presigned("get_object", key="data/part-0")[1], {}
        ),
    ),
    row(
        "presigned-longer",
        "make a presigned GET last longer",
        "403 SignatureDoesNotMatch",
        lambda w: w.plain(
            "GET", "?".join(w.presigned("get_object")).replace("Expires=600", "Expires=6000"), {}
        ),
    ),
    row(
        "presigned-eternal",
        "presign for more than a week",
        "40[03] ",
        lambda w: w.plain("GET", "?".join(w.presigned("get_object", seconds=604801)), {}),
    ),
    row(
        "presigned-upload",
        "begin an upload with a presigned PUT",
        "403 SignatureDoesNotMatch",
        lambda w: w.plain(
            "POST", "?".join(w.presigned("put_object", key="copy")) + "&uploads=", {}
        ),
    ),
)

TEMPORARY = (
    row(
        "ended-keys",
        "use the keys of a job that has ended",
        "400 ExpiredToken",
        lambda w: describe(w.job),
    ),
    row(
        "ended-keys-s3",
        "read the job's channel with them",
        "400 ExpiredToken",
        lambda w: w.job.call("s3", "GET", "/yard/data/part-0"),
    ),
    row(
        "token-left-out",
        "use them without their token",
        "403 UnrecognizedClientException",
        lambda w: describe(w.job_with(Token=None)),
    ),
    row(
        "token-changed",
        "change a letter of the token",
        "403 UnrecognizedClientException",
        lambda w: describe(w.job_with(Token=w.job.keys["Token"][:-8] + "AAAAAAAA")),
    ),
    row(
        "token-cut",
        "cut the token",
        "403 UnrecognizedClientException",
        lambda w: describe(w.job_with(Token=w.job.keys["Token"][:40])),
    ),
    row(
        "token-of-another-key",
        "use the token with another key",
        "403 UnrecognizedClientException",
        lambda w: describe(w.job_with(AccessKeyId="ASIAOTHER00000000000")),
    ),
    row(
        "token-of-the-owner",
        "add the token to the owner's key id",
        "403 UnrecognizedClientException",
        lambda w: describe(w.job_with(AccessKeyId=w.keys["AccessKeyId"])),
    ),
)


def poor(
    name: str,
    tried: str,
    event: str,
    attempt: Attempt,
    resource: str = "",
    refused: str = "40[03] AccessDenied",
) -> Attack:
    return Attack(name, tried, "^" + refused, AUDIT, attempt, (event, resource))


def iam(action: str, **members: str) -> Attempt:
    return lambda w: w.poor.form("iam", "2010-05-08", Action=action, **members)


CREATE = {
    "TrainingJobName": "poors",
    "RoleArn": "arn:aws:iam::123456789012:role/trainer",
    "AlgorithmSpecification": {"TrainingImage": "trainyard/host", "TrainingInputMode": "File"},
    "OutputDataConfig": {"S3OutputPath": "s3://yard/x"},
    "ResourceConfig": {"InstanceType": "ml.t3.medium", "InstanceCount": 1, "VolumeSizeInGB": 1},
    "StoppingCondition": {"MaxRuntimeInSeconds": 60},
}
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
EVERYTHING = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
)

POOR = (
    poor(
        "poor-console",
        "sign in to the console",
        "CreateConsoleSession",
        lambda w: pages.sign_in(w.poor),
        refused="403",
    ),
    poor(
        "poor-describe",
        "read a job's hyperparameters",
        "DescribeTrainingJob",
        lambda w: describe(w.poor),
        "victim",
    ),
    poor(
        "poor-create",
        "create a job",
        "CreateTrainingJob",
        lambda w: w.poor.target("sagemaker", "CreateTrainingJob", **CREATE),
        "poors",
    ),
    poor(
        "poor-preview",
        "learn what holds the machines, by the preview of a job",
        "PreviewJob",
        lambda w: w.poor.target("trainyard", "PreviewJob", TrainingJobRequest=json.dumps(CREATE)),
    ),
    poor(
        "poor-template",
        "save a template, so that others start the command in it",
        "PutJobTemplate",
        lambda w: w.poor.target(
            "trainyard", "PutJobTemplate", TemplateName="team", TrainingJobRequest="{}"
        ),
        "job-template/team",
    ),
    poor(
        "poor-stop",
        "stop a job",
        "StopTrainingJob",
        lambda w: w.poor.target("sagemaker", "StopTrainingJob", TrainingJobName="victim"),
        "victim",
    ),
    poor(
        "poor-list",
        "list the jobs",
        "ListTrainingJobs",
        lambda w: w.poor.target("sagemaker", "ListTrainingJobs"),
    ),
    poor("poor-get", "read an object", "GetObject", lambda w: get(w.poor), "secret/object"),
    poor(
        "poor-put",
        "write an object",
        "PutObject",
        lambda w: w.poor.call("s3", "PUT", SECRET_OBJECT, body=b"changed"),
        "secret/object",
    ),
    poor(
        "poor-delete",
        "delete an object",
        "DeleteObject",
        lambda w: w.poor.call("s3", "DELETE", SECRET_OBJECT),
        "secret/object",
    ),
    poor(
        "poor-list-bucket",
        "list a bucket",
        "ListObjectsV2",
        lambda w: w.poor.call("s3", "GET", "/yard", "list-type=2"),
    ),
    poor(
        "poor-log",
        "read a job's log",
        "FilterLogEvents",
        lambda w: w.poor.target(
            "logs", "FilterLogEvents", logGroupName="/aws/sagemaker/TrainingJobs"
        ),
    ),
    poor(
        "poor-forge-log",
        "write into a job's log",
        "PutLogEvents",
        lambda w: w.poor.target(
            "logs",
            "PutLogEvents",
            logGroupName="/aws/sagemaker/TrainingJobs",
            logStreamName="victim/algo-1-1",
            logEvents=[{"timestamp": 1, "message": "forged"}],
        ),
        "victim",
    ),
    poor(
        "poor-user",
        "make a user",
        "CreateUser",
        iam("CreateUser", UserName="mallory"),
        "user/mallory",
    ),
    poor(
        "poor-administrator",
        "make itself an administrator",
        "AttachUserPolicy",
        iam("AttachUserPolicy", UserName="poor", PolicyArn=ADMINISTRATOR),
    ),
    poor(
        "poor-inline",
        "give itself a policy",
        "PutUserPolicy",
        iam("PutUserPolicy", UserName="poor", PolicyName="all", PolicyDocument=EVERYTHING),
        "user/poor",
    ),
    poor(
        "poor-group",
        "join a group",
        "AddUserToGroup",
        iam("AddUserToGroup", UserName="poor", GroupName="admins"),
    ),
    poor(
        "poor-owners-key",
        "make a key of the owner",
        "CreateAccessKey",
        iam("CreateAccessKey", UserName="owner"),
        "user/owner",
    ),
    poor(
        "poor-disable-key",
        "disable the owner's key",
        "UpdateAccessKey",
        lambda w: iam(
            "UpdateAccessKey",
            UserName="owner",
            AccessKeyId=w.keys["AccessKeyId"],
            Status="Inactive",
        )(w),
    ),
    poor(
        "poor-trust",
        "have a role trust it",
        "UpdateAssumeRolePolicy",
        iam("UpdateAssumeRolePolicy", RoleName="trainer", PolicyDocument=EVERYTHING),
        "role/trainer",
    ),
    poor(
        "poor-role-policy",
        "give a role a policy",
        "PutRolePolicy",
        iam("PutRolePolicy", RoleName="trainer", PolicyName="all", PolicyDocument=EVERYTHING),
        "role/trainer",
    ),
    poor(
        "poor-assume",
        "assume a role",
        "AssumeRole",
        lambda w: w.poor.form(
            "sts",
            "2011-06-15",
            Action="AssumeRole",
            RoleArn="arn:aws:iam::123456789012:role/admin",
            RoleSessionName="attack",
        ),
        "role/admin",
    ),
    poor(
        "poor-campaign",
        "start a campaign",
        "CreateCampaign",
        lambda w: w.poor.target("trainyard", "CreateCampaign", Definition="{}"),
    ),
    poor(
        "poor-catalogue",
        "query the catalogue",
        "QueryCatalogue",
        lambda w: w.poor.target("trainyard", "QueryCatalogue", Statement="SELECT 1"),
    ),
    poor(
        "poor-costs",
        "read everybody's costs",
        "GetCostReport",
        lambda w: w.poor.target("trainyard", "GetCostReport", GroupBy="user"),
    ),
    poor(
        "poor-interrupt",
        "interrupt a job",
        "InterruptTrainingJob",
        lambda w: w.poor.target("trainyard", "InterruptTrainingJob", TrainingJobName="victim"),
        "victim",
    ),
    poor(
        "poor-kill",
        "end a job at once",
        "KillJob",
        lambda w: w.poor.target("trainyard", "KillJob", JobName="victim"),
        "victim",
    ),
)

GROUPS = {
    "without a key": UNSIGNED,
    "the console": pages.ATTACKS,
    "wrong signatures": SIGNATURES,
    "presigned URLs": PRESIGNED,
    "temporary keys": TEMPORARY,
    "a user without rights": POOR,
}
ATTACKS = tuple(attack for group in GROUPS.values() for attack in group)
