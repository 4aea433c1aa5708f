"""Tests IAM through unmodified clients: users, groups, roles, policies and access keys, across
restarts and SIGHUP."""

import json
import os
from collections.abc import Callable

import botocore.exceptions
import pytest
from botocore.client import BaseClient

from tests.trainyard_server import Answer, Server, wait_for

KEYS = (
    "[[access_key]]\nid = 'AKIAOWNEROWNEROWNER0'\nsecret = 'owner-secret'\n[[access_key]]\nid ="
    " 'AKIAANNANNANNANNANN0'\nsecret = 'ann-secret'\nuser = 'ann'\n"
)
USERS = (
    "[[group]]\nname = 'team'\npolicies = ['CloudWatchLogsFullAccess']\n[[user]]\nname ="
    " 'ann'\ngroups = ['team']\npolicies = ['AmazonS3ReadOnlyAccess']\n"
)


def policy(
    action: str = "s3:GetObject", resource: str = "arn:aws:s3:::yard/ann/*", effect: str = "Allow"
) -> str:
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [{"Effect": effect, "Action": action, "Resource": resource}],
        }
    )


def trust(principal: str = "sagemaker.amazonaws.com") -> str:
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": {"Service": principal}, "Action": "sts:AssumeRole"}
            ],
        }
    )


def decision(iam: BaseClient, arn: str, action: str, resource: str = "*") -> str:
    return iam.simulate_principal_policy(
        PolicySourceArn=arn, ActionNames=[action], ResourceArns=[resource]
    )["EvaluationResults"][0]["EvalDecision"]


def test_users_groups_and_policies_survive_a_kill(start: Callable[..., Server]) -> None:
    server = start()
    iam = server.boto("iam")
    user = iam.create_user(UserName="ann", Path="/lab/", Tags=[{"Key": "team", "Value": "vision"}])[
        "User"
    ]
    assert user["Arn"].endswith(":user/lab/ann") and user["UserId"].startswith("AIDA")
    iam.create_group(GroupName="team")
    iam.add_user_to_group(GroupName="team", UserName="ann")
    iam.put_group_policy(GroupName="team", PolicyName="read", PolicyDocument=policy())
    made = iam.create_policy(
        PolicyName="write", PolicyDocument=policy("s3:PutObject"), Description="of the team"
    )["Policy"]
    iam.attach_user_policy(UserName="ann", PolicyArn=made["Arn"])
    iam.create_policy_version(
        PolicyArn=made["Arn"], PolicyDocument=policy("s3:DeleteObject"), SetAsDefault=True
    )
    iam.create_role(RoleName="Train", AssumeRolePolicyDocument=trust(), MaxSessionDuration=7200)
    iam.put_role_policy(RoleName="Train", PolicyName="p", PolicyDocument=policy())
    key = iam.create_access_key(UserName="ann")["AccessKey"]

    server.kill()
    server.start()
    iam = server.boto("iam")
    assert iam.get_user(UserName="ann")["User"] == user
    assert [one["GroupName"] for one in iam.list_groups_for_user(UserName="ann")["Groups"]] == [
        "team"
    ]
    assert iam.get_group_policy(GroupName="team", PolicyName="read")[
        "PolicyDocument"
    ] == json.loads(policy())
    assert iam.get_policy(PolicyArn=made["Arn"])["Policy"]["DefaultVersionId"] == "v2"
    assert iam.get_policy_version(PolicyArn=made["Arn"], VersionId="v1")["PolicyVersion"][
        "Document"
    ] == json.loads(policy("s3:PutObject"))
    assert iam.get_role(RoleName="Train")["Role"]["AssumeRolePolicyDocument"] == json.loads(trust())
    assert iam.get_role(RoleName="Train")["Role"]["MaxSessionDuration"] == 7200
    assert [
        one["AccessKeyId"] for one in iam.list_access_keys(UserName="ann")["AccessKeyMetadata"]
    ] == [key["AccessKeyId"]]
    assert decision(iam, user["Arn"], "s3:GetObject", "arn:aws:s3:::yard/ann/x") == "allowed"
    assert decision(iam, user["Arn"], "s3:DeleteObject", "arn:aws:s3:::yard/ann/x") == "allowed"
    assert (
        decision(iam, user["Arn"], "s3:PutObject", "arn:aws:s3:::yard/ann/x") == "implicitDeny"
    ), "the default version no longer allows it"
    assert decision(iam, user["Arn"], "s3:GetObject", "arn:aws:s3:::yard/bob/x") == "implicitDeny"
    assert iam.get_account_summary()["SummaryMap"]["Users"] == 1


def test_secrets_are_nowhere_in_clear(start: Callable[..., Server]) -> None:
    server = start()
    iam = server.boto("iam")
    iam.create_user(UserName="ann")
    keys = [iam.create_access_key(UserName="ann")["AccessKey"] for _ in range(2)]
    with pytest.raises(iam.exceptions.LimitExceededException, match="AccessKeysPerUser: 2"):
        iam.create_access_key(UserName="ann")
    iam.delete_access_key(UserName="ann", AccessKeyId=keys[0]["AccessKeyId"])
    for folder, _, names in os.walk(server.data):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                content = file.read()
            for key in keys:
                assert key["SecretAccessKey"].encode() not in content, path
    assert os.stat(os.path.join(server.data, "sealing.key")).st_mode & 0o777 == 0o600


def test_errors_have_aws_texts(server: Server) -> None:
    iam = server.boto("iam")
    iam.create_user(UserName="carl")
    for call, code in [
        (lambda: iam.create_user(UserName="CARL"), "EntityAlreadyExists"),
        (lambda: iam.get_user(UserName="nobody"), "NoSuchEntity"),
        (
            lambda: iam.put_user_policy(UserName="carl", PolicyName="p", PolicyDocument="{"),
            "MalformedPolicyDocument",
        ),
        (
            lambda: iam.put_user_policy(
                UserName="carl", PolicyName="p", PolicyDocument=policy(effect="Permit")
            ),
            "MalformedPolicyDocument",
        ),
        (
            lambda: iam.put_user_policy(
                UserName="carl",
                PolicyName="p",
                PolicyDocument=policy(resource="arn:aws:s3:::" + "x" * 3000),
            ),
            "LimitExceeded",
        ),
        (
            lambda: iam.create_policy(PolicyName="p", PolicyDocument="[" * 100_000),
            "MalformedPolicyDocument",
        ),
        (
            lambda: iam.attach_user_policy(
                UserName="carl", PolicyArn="arn:aws:iam::aws:policy/NoSuchPolicy"
            ),
            "NoSuchEntity",
        ),
        (
            lambda: iam.detach_user_policy(
                UserName="carl", PolicyArn="arn:aws:iam::aws:policy/ReadOnlyAccess"
            ),
            "NoSuchEntity",
        ),
        (
            lambda: iam.delete_policy(PolicyArn="arn:aws:iam::aws:policy/ReadOnlyAccess"),
            "UnmodifiableEntity",
        ),
        (
            lambda: iam.update_access_key(
                UserName="carl", AccessKeyId="AKIAAAAAAAAAAAAAAAAA", Status="Inactive"
            ),
            "NoSuchEntity",
        ),
        (
            lambda: iam.create_role(RoleName="r", AssumeRolePolicyDocument=policy()),
            "MalformedPolicyDocument",
        ),
        (lambda: iam.create_user(UserName="a/b"), "ValidationError"),
        (lambda: iam.create_user(UserName="x" * 65), "ValidationError"),
    ]:
        with pytest.raises(botocore.exceptions.ClientError) as refused:
            call()
        assert refused.value.response["Error"]["Code"] == code, refused.value
    iam.attach_user_policy(UserName="carl", PolicyArn="arn:aws:iam::aws:policy/ReadOnlyAccess")
    with pytest.raises(iam.exceptions.DeleteConflictException, match="detach all policies"):
        iam.delete_user(UserName="carl")
    iam.detach_user_policy(UserName="carl", PolicyArn="arn:aws:iam::aws:policy/ReadOnlyAccess")
    iam.delete_user(UserName="carl")
    assert iam.get_role(RoleName="AnyName")["Role"]["Arn"].endswith(":role/AnyName"), (
        "a role that is not defined is the built-in one"
    )


def test_both_command_lines(aws: Callable[..., Answer]) -> None:
    name = "cli"
    aws("iam", "create-user", "--user-name", name)
    key = aws("iam", "create-access-key", "--user-name", name)["AccessKey"]
    aws(
        "iam",
        "update-access-key",
        "--user-name",
        name,
        "--access-key-id",
        key["AccessKeyId"],
        "--status",
        "Inactive",
    )
    assert (
        aws("iam", "list-access-keys", "--user-name", name)["AccessKeyMetadata"][0]["Status"]
        == "Inactive"
    )
    assert (
        aws("iam", "get-access-key-last-used", "--access-key-id", key["AccessKeyId"])[
            "AccessKeyLastUsed"
        ]["ServiceName"]
        == "N/A"
    )
    aws(
        "iam",
        "put-user-policy",
        "--user-name",
        name,
        "--policy-name",
        "p",
        "--policy-document",
        policy(),
    )
    assert aws("iam", "get-user-policy", "--user-name", name, "--policy-name", "p")[
        "PolicyDocument"
    ] == json.loads(policy())
    aws("iam", "tag-user", "--user-name", name, "--tags", "Key=team,Value=vision")
    assert aws("iam", "list-user-tags", "--user-name", name)["Tags"] == [
        {"Key": "team", "Value": "vision"}
    ]
    policies = aws("iam", "list-policies", "--scope", "AWS", "--max-items", "3")
    assert len(policies["Policies"]) == 3 and policies["NextToken"], "pages are followed"
    answer = aws(
        "iam",
        "simulate-custom-policy",
        "--policy-input-list",
        policy(),
        "--action-names",
        "s3:GetObject",
        "--resource-arns",
        "arn:aws:s3:::yard/ann/x",
    )
    assert answer["EvaluationResults"][0]["EvalDecision"] == "allowed"
    aws("iam", "delete-user-policy", "--user-name", name, "--policy-name", "p")
    aws("iam", "delete-access-key", "--user-name", name, "--access-key-id", key["AccessKeyId"])
    aws("iam", "delete-user", "--user-name", name)


def test_the_config_defines_users_and_sighup_takes_them_over(start: Callable[..., Server]) -> None:
    server = start(KEYS + USERS)
    iam = server.boto("iam")
    arn = iam.get_user(UserName="ann")["User"]["Arn"]
    assert decision(iam, arn, "s3:GetObject", "arn:aws:s3:::yard/x") == "allowed"
    assert decision(iam, arn, "logs:GetLogEvents", "*") == "allowed", "of the group"
    with pytest.raises(botocore.exceptions.ClientError, match="configuration file") as refused:
        iam.put_user_policy(UserName="ann", PolicyName="p", PolicyDocument=policy())
    assert refused.value.response["Error"]["Code"] == "UnmodifiableEntity"
    ann = server.boto(
        "sts", aws_access_key_id="AKIAANNANNANNANNANN0", aws_secret_access_key="ann-secret"
    )
    assert ann.get_caller_identity()["Arn"]
    server.reload(KEYS + USERS.replace("AmazonS3ReadOnlyAccess", "AmazonS3FullAccess"))
    wait_for(
        lambda: decision(iam, arn, "s3:PutObject", "arn:aws:s3:::yard/x") == "allowed",
        "the new policy",
    )
    server.reload(KEYS)
    wait_for(lambda: "may do nothing" in server.log_text(), "the warning of a key without policies")
    assert 'add [[user]] name = "ann"' in server.log_text().replace('\\"', '"')


def test_an_invalid_config_is_not_reloaded(start: Callable[..., Server]) -> None:
    server = start(KEYS + USERS)
    iam = server.boto("iam")
    server.reload(KEYS + USERS.replace("AmazonS3ReadOnlyAccess", "NoSuchPolicy"))
    wait_for(lambda: "unknown policy NoSuchPolicy" in server.log_text(), "the error")
    assert (
        decision(
            iam, iam.get_user(UserName="ann")["User"]["Arn"], "s3:GetObject", "arn:aws:s3:::yard/x"
        )
        == "allowed"
    )


def test_instance_profiles_survive_a_kill(start: Callable[..., Server]) -> None:
    server = start()
    iam = server.boto("iam")
    iam.create_role(RoleName="Train", AssumeRolePolicyDocument=trust())
    made = iam.create_instance_profile(
        InstanceProfileName="machines", Path="/lab/", Tags=[{"Key": "team", "Value": "vision"}]
    )["InstanceProfile"]
    assert made["Arn"].endswith(":instance-profile/lab/machines")
    iam.add_role_to_instance_profile(InstanceProfileName="machines", RoleName="Train")
    server.kill()
    server.start()
    iam = server.boto("iam")
    found = iam.get_instance_profile(InstanceProfileName="machines")["InstanceProfile"]
    assert found["InstanceProfileId"] == made["InstanceProfileId"]
    assert [role["RoleName"] for role in found["Roles"]] == ["Train"]
    assert found["Tags"] == [{"Key": "team", "Value": "vision"}]
    for call, error, text in (
        (lambda: iam.delete_role(RoleName="Train"), "DeleteConflict", "instance profile first"),
        (
            lambda: iam.delete_instance_profile(InstanceProfileName="machines"),
            "DeleteConflict",
            "instance profile first",
        ),
        (
            lambda: iam.create_instance_profile(InstanceProfileName="machines"),
            "EntityAlreadyExists",
            "Instance Profile machines already exists.",
        ),
        (
            lambda: iam.add_role_to_instance_profile(
                InstanceProfileName="machines", RoleName="Train"
            ),
            "LimitExceeded",
            "InstanceSessionsPerInstanceProfile: 1",
        ),
        (
            lambda: iam.get_instance_profile(InstanceProfileName="none"),
            "NoSuchEntity",
            "Instance Profile none cannot be found.",
        ),
    ):
        with pytest.raises(botocore.exceptions.ClientError, match=text) as refused:
            call()
        assert refused.value.response["Error"]["Code"] == error
    for name in ("a", "b", "c"):
        iam.create_instance_profile(InstanceProfileName=name)
    pages = iam.get_paginator("list_instance_profiles").paginate(PaginationConfig={"PageSize": 2})
    names = [one["InstanceProfileName"] for page in pages for one in page["InstanceProfiles"]]
    assert names == ["a", "b", "c", "machines"]
    of_role = iam.list_instance_profiles_for_role(RoleName="Train")["InstanceProfiles"]
    assert [one["InstanceProfileName"] for one in of_role] == ["machines"]
    iam.remove_role_from_instance_profile(InstanceProfileName="machines", RoleName="Train")
    iam.delete_instance_profile(InstanceProfileName="machines")
    iam.delete_role(RoleName="Train")


def test_a_profile_needs_the_right_to_pass_its_role(server: Server) -> None:
    iam = server.boto("iam")
    iam.create_user(UserName="operator")
    iam.put_user_policy(
        UserName="operator",
        PolicyName="profiles",
        PolicyDocument=policy("iam:*InstanceProfile", "*"),
    )
    key = iam.create_access_key(UserName="operator")["AccessKey"]
    mine = server.boto(
        "iam",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    iam.create_role(RoleName="Powerful", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
    mine.create_instance_profile(InstanceProfileName="of-operator")
    arguments = {"InstanceProfileName": "of-operator", "RoleName": "Powerful"}
    with pytest.raises(botocore.exceptions.ClientError, match="iam:PassRole") as refused:
        mine.add_role_to_instance_profile(**arguments)
    assert refused.value.response["Error"]["Code"] == "AccessDenied"
    passing = json.loads(policy("iam:PassRole", "arn:aws:iam::*:role/Powerful"))
    passing["Statement"][0]["Condition"] = {
        "StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}
    }
    iam.put_user_policy(UserName="operator", PolicyName="pass", PolicyDocument=json.dumps(passing))
    mine.add_role_to_instance_profile(**arguments)
    with pytest.raises(botocore.exceptions.ClientError, match="iam:ListInstanceProfiles"):
        mine.list_instance_profiles()


def test_both_command_lines_have_instance_profiles(aws: Callable[..., Answer]) -> None:
    name = ("--instance-profile-name", "cli-machines")
    trusting = ("--assume-role-policy-document", trust())
    aws("iam", "create-role", "--role-name", "cli-role", *trusting)
    aws("iam", "create-instance-profile", *name)
    aws("iam", "add-role-to-instance-profile", *name, "--role-name", "cli-role")
    found = aws("iam", "get-instance-profile", *name)["InstanceProfile"]
    assert [one["RoleName"] for one in found["Roles"]] == ["cli-role"]
    aws("iam", "remove-role-from-instance-profile", *name, "--role-name", "cli-role")
    aws("iam", "delete-instance-profile", *name)
    aws("iam", "delete-role", "--role-name", "cli-role")
