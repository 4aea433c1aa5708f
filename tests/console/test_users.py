"""Tests the view of users: keys and policies, changes after a confirmation, and permissions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.console import world
from tests.console.world import console, fill_keys, open_context, signed_in
from tests.trainyard_server import Server

READ_ONLY = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
LISTS = ("iam:ListUsers", "iam:GetUser", "iam:ListAccessKeys", "iam:ListUserPolicies")


def document(action: str, **more: Any) -> str:
    statement = {"Effect": "Allow", "Action": action, "Resource": "*"} | more
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.fixture(scope="module")
def members(server: Server) -> Server:
    """Creates the user mia with a key, an inline policy, and a group with a policy."""
    iam = server.boto("iam")
    iam.create_user(UserName="mia")
    iam.create_access_key(UserName="mia")
    iam.put_user_policy(
        UserName="mia",
        PolicyName="own",
        PolicyDocument=document(
            "s3:GetObject", Condition={"StringNotEquals": {"s3:prefix": world.HOSTILE}}
        ),
    )
    iam.create_group(GroupName="vision")
    iam.put_group_policy(
        GroupName="vision", PolicyName="jobs", PolicyDocument=document("trainyard:ListJobs")
    )
    iam.add_user_to_group(GroupName="vision", UserName="mia")
    return server


@pytest.fixture
def page(browser: Browser, members: Server) -> Iterator[Page]:
    one = signed_in(browser, members)
    yield one
    one.context.close()


def keys_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Access keys").first.locator("tbody tr")


def test_the_list_shows_keys_groups_and_policies(page: Page, members: Server) -> None:
    page.keyboard.press("u")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="mia", exact=True))
    [key] = members.boto("iam").list_access_keys(UserName="mia")["AccessKeyMetadata"]
    expect(row).to_contain_text(key["AccessKeyId"])
    expect(row).to_contain_text("vision")
    expect(row).to_contain_text("own, jobs")
    page.keyboard.press("/")
    page.keyboard.type("nothing-of-this-name")
    expect(page.get_by_text("No user matches")).to_be_visible()
    expect(page).to_have_url(re.compile("q=nothing-of-this-name"))
    page.get_by_label("Search by user").fill("mi")
    row.get_by_role("link", name="mia").click()
    expect(page).to_have_url(console(members, "/users?user=mia"))
    expect(page.get_by_text("Groups: vision")).to_be_visible()


def test_policies_are_shown_as_json(page: Page, members: Server) -> None:
    page.goto(console(members, "/users?user=mia"))
    page.get_by_text("inline", exact=True).click()
    text = page.get_by_role("region", name="The policy own")
    expect(text).to_contain_text('"Action": "s3:GetObject"')
    expect(text).to_contain_text(world.HOSTILE)
    page.get_by_text("inline, of the group vision").click()
    expect(page.get_by_role("region", name="The policy jobs")).to_contain_text("ListJobs")
    assert page.evaluate("window.broken") is None


def test_a_check_shows_which_policy_allows_an_action(page: Page, members: Server) -> None:
    page.goto(console(members, "/users?user=mia"))
    page.get_by_label("Action").fill("s3:GetObject")
    page.get_by_label("Resource").fill("arn:aws:s3:::yard/a")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Allowed, by own.")).to_be_visible()
    address = page.url
    page.goto(console(members, "/users"))
    page.goto(address)
    expect(page.get_by_text("Allowed, by own.")).to_be_visible()
    page.get_by_label("Action").fill("s3:PutObject")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("no policy allows it")).to_be_visible()


def test_a_key_is_created_and_its_secret_is_shown_once(page: Page, members: Server) -> None:
    iam = members.boto("iam")
    iam.create_user(UserName="kim")
    page.goto(console(members, "/users?user=kim"))
    page.get_by_role("button", name="Create a key").click()
    dialog = page.get_by_role("dialog", name="Create an access key of kim?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert not iam.list_access_keys(UserName="kim")["AccessKeyMetadata"]
    page.get_by_role("button", name="Create a key").click()
    dialog.get_by_role("button", name="Create the key").click()
    secret = page.get_by_role("region", name="The new access key and its secret")
    expect(secret).to_contain_text(re.compile(r"aws_secret_access_key = \S{40}"))
    shown = re.search(r"aws_secret_access_key = (\S+)", secret.inner_text())
    assert shown
    [key] = iam.list_access_keys(UserName="kim")["AccessKeyMetadata"]
    expect(keys_of(page)).to_contain_text([key["AccessKeyId"]])
    page.reload()
    expect(keys_of(page)).to_contain_text([key["AccessKeyId"]])
    assert shown[1] not in page.content()
    assert shown[1] not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    page.get_by_role("button", name=f"Deactivate {key['AccessKeyId']}").click()
    page.get_by_role("dialog").get_by_role("button", name="Deactivate").click()
    expect(keys_of(page)).to_contain_text(["Inactive"])
    page.get_by_role("button", name=f"Delete {key['AccessKeyId']}").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the key").click()
    expect(keys_of(page)).to_have_text(["No access keys."])
    assert not iam.list_access_keys(UserName="kim")["AccessKeyMetadata"]


def test_a_policy_is_attached_and_detached(page: Page, members: Server) -> None:
    iam = members.boto("iam")
    iam.create_user(UserName="leo")
    page.goto(console(members, "/users?user=leo"))
    page.get_by_label("Attach a policy").select_option(READ_ONLY)
    page.get_by_role("button", name="Attach", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Attach").click()
    policy = page.get_by_role("region", name="Policies").get_by_text("AWS managed")
    policy.click()
    expect(page.get_by_role("region", name="The policy AmazonS3ReadOnlyAccess")).to_contain_text(
        "Effect"
    )
    [attached] = iam.list_attached_user_policies(UserName="leo")["AttachedPolicies"]
    assert attached["PolicyArn"] == READ_ONLY
    page.get_by_role("button", name="Detach AmazonS3ReadOnlyAccess").click()
    page.get_by_role("dialog").get_by_role("button", name="Detach").click()
    expect(policy).to_be_hidden()
    assert not iam.list_attached_user_policies(UserName="leo")["AttachedPolicies"]


def test_a_rejected_change_is_explained(page: Page, members: Server) -> None:
    iam = members.boto("iam")
    iam.create_user(UserName="two")
    for _ in range(2):
        iam.create_access_key(UserName="two")
    page.goto(console(members, "/users?user=two"))
    page.get_by_role("button", name="Create a key").click()
    page.get_by_role("dialog").get_by_role("button", name="Create the key").click()
    expect(page.get_by_role("alert")).to_contain_text("AccessKeysPerUser")
    assert len(iam.list_access_keys(UserName="two")["AccessKeyMetadata"]) == 2


def test_changes_that_a_principal_may_not_make_are_not_offered(
    browser: Browser, members: Server
) -> None:
    keys = world.user(members, "auditor", *LISTS)
    page = open_context(browser).new_page()
    page.goto(console(members, "/users"))
    fill_keys(page, keys)
    links = page.get_by_role("navigation", name="Views").get_by_role("link")
    expect(links).to_have_text(["Users"])
    page.get_by_role("link", name="mia", exact=True).click()
    expect(keys_of(page)).to_have_count(1)
    for name in ("Create a key", "Deactivate", "Delete", "Detach", "Attach", "Check"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    refused = page.evaluate(
        "() => fetch('/console/api/iam/CreateAccessKey?region=us-east-1', {method:"
        " 'POST', body: '{\"UserName\": \"mia\"}'}).then(response => response.status)"
    )
    assert refused == 403
    assert len(members.boto("iam").list_access_keys(UserName="mia")["AccessKeyMetadata"]) == 1
    page.context.close()
