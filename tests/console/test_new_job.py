"""Tests the form of a new job: its preview, that it starts the job, and that the calls that it
shows start the same job."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests import jobs
from tests.console import world
from tests.console.world import console, fill_keys, open_context, signed_in
from tests.trainyard_server import PROGRAM, Server

pytestmark = pytest.mark.usefixtures("own_operations")

COMMAND = 'echo "it\'s" $GREETING; ls /opt/ml/input/data/train; test "$SUM" = \'a"b\\c\''
# The members that differ between two equal jobs.
OWN = re.compile(r"Time$|Arn$|Arns$|^TrainingJobName$|Transitions$|^ModelArtifacts$|^Response")


@pytest.fixture(scope="module")
def stored(server: Server) -> Server:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="digits")
    for key in ("train/part-0.csv", "train/part-1.csv", "code/sourcedir.tar.gz"):
        s3.put_object(Bucket="digits", Key=key, Body=b"1,2\n")
    return server


@pytest.fixture
def page(browser: Browser, stored: Server) -> Iterator[Page]:
    one = signed_in(browser, stored)
    one.goto(console(stored, "/new"))
    yield one
    one.context.close()


def preview_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Before it starts")


def answered(page: Page) -> None:
    """Waits until the preview shows the current form."""
    expect(preview_of(page)).to_have_attribute("aria-busy", "false")


def fill(page: Page, name: str, command: str = "true") -> None:
    page.get_by_label("Job name").fill(name)
    page.get_by_label("Command", exact=True).fill(command)
    page.get_by_label("Instance type").select_option("ml.t3.medium")
    page.get_by_label("Disk per host, GiB").fill("1")
    page.get_by_role("textbox", name="Output").fill("s3://yard/models")


def code_of(page: Page, client: str) -> str:
    page.get_by_role("button", name=client, exact=True).click()
    return page.get_by_label("The call that starts the job", exact=True).inner_text()


def add_pair(page: Page, one: str, number: int, name: str, value: str) -> None:
    page.get_by_role("button", name=f"Add {one}").click()
    page.get_by_label(f"Name of {one} {number}", exact=True).fill(name)
    page.get_by_label(f"Value of {one} {number}", exact=True).fill(value)


def test_a_job_is_filled_in_previewed_and_started(page: Page, stored: Server) -> None:
    fill(page, "of-the-form", "echo hello from the form")
    page.get_by_label("Hosts").fill("2")
    preview = preview_of(page)
    expect(preview).to_contain_text("held by training-job/running-1")
    expect(preview).to_contain_text(re.compile(r"Starts in \d"))
    changes = preview.get_by_role("list", name="Changes with which it would start sooner")
    expect(changes).to_contain_text("request 1 instance instead of 2")
    page.get_by_label("Hosts").fill("1")
    expect(preview).to_contain_text("Starts now")
    expect(preview).to_contain_text(re.compile(r"An hour\s*0\.\d+ USD"))
    page.get_by_role("button", name="Start the job").click()
    expect(page).to_have_url(re.compile("/jobs/of-the-form"))
    expect(page.get_by_role("heading", name="of-the-form")).to_be_visible()
    done = jobs.wait_until(stored.boto("sagemaker"), "of-the-form", ["Completed"])
    assert done["ResourceConfig"]["VolumeSizeInGB"] == 1
    tags = stored.boto("sagemaker").list_tags(ResourceArn=done["TrainingJobArn"])
    assert tags["Tags"] == []


def test_the_servers_errors_are_shown_at_their_fields(page: Page, stored: Server) -> None:
    fill(page, "failed-1")
    preview = preview_of(page)
    expect(preview).to_contain_text("Job name must be unique")
    preview.get_by_role("button", name=re.compile("Job name must be unique")).click()
    name = page.get_by_label("Job name")
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#problem-name")).to_contain_text("Job name must be unique")
    assert "problem-name" in (name.get_attribute("aria-describedby") or "")
    name.fill("-")
    page.get_by_label("Image", exact=True).fill("")
    page.get_by_label("Time limit", exact=True).fill("99")
    expect(page.locator("#problem-name")).to_contain_text("pattern")
    name.fill("fine-1")
    page.get_by_label("Image", exact=True).fill("absent")
    expect(page.locator("#problem-image")).to_contain_text("image 'absent' is neither")
    page.get_by_label("Image", exact=True).fill("trainyard/host")
    expect(page.locator("#problem-runtime")).to_contain_text("28 days")
    page.get_by_role("button", name="Start the job").click()
    expect(page.get_by_label("Time limit", exact=True)).to_be_focused()
    expect(page).to_have_url(re.compile("/new"))
    page.get_by_label("Time limit", exact=True).fill("1")
    expect(preview).to_contain_text(re.compile("Starts"))
    expect(page.locator("[aria-invalid]")).to_have_count(0)


def test_buckets_are_browsed(page: Page, stored: Server) -> None:
    page.get_by_role("button", name="Add channel").click()
    expect(page.get_by_label("Name of channel 1")).to_have_value("train")
    page.get_by_role("button", name="Browse: Data of channel 1").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="digits").click()
    dialog.get_by_role("button", name="train/").click()
    expect(dialog).to_contain_text("part-1.csv")
    assert not (found := world.violations(page)), found
    dialog.get_by_role("button", name="Choose this place").click()
    expect(page.get_by_role("textbox", name="Data of channel 1")).to_have_value(
        "s3://digits/train/"
    )
    page.get_by_role("radio", name="A script").check()
    page.get_by_role("button", name="Browse: Archive of the sources").click()
    page.get_by_role("dialog").get_by_role("button", name="digits").click()
    page.get_by_role("dialog").get_by_role("button", name="code/").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("sourcedir")).click()
    expect(page.get_by_role("textbox", name="Archive of the sources")).to_have_value(
        "s3://digits/code/sourcedir.tar.gz"
    )


def run_code(server: Server, client: str, code: str) -> None:
    if client == "Python":
        environment = server.environment()
        subprocess.run(
            [sys.executable, "-c", code], check=True, env=environment, timeout=world.SECONDS_MAX
        )
        return
    script = f"{server.data}-{client.replace(' ', '-')}.sh"
    # The test waits for the job.
    code = code.replace("trainyard submit", f"{PROGRAM} submit").replace(" --follow", "")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"cd {os.path.dirname(server.data)}\n" + code)
    world.run_shell(server, script)


def described(server: Server, name: str) -> dict[str, Any]:
    sagemaker = server.boto("sagemaker")
    job = jobs.wait_until(sagemaker, name, ["Completed", "Failed"])
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    tags = sagemaker.list_tags(ResourceArn=job["TrainingJobArn"])["Tags"]
    kept = {member: value for member, value in job.items() if not OWN.search(member)}
    for member in ("BillableTimeInSeconds", "TrainingTimeInSeconds", "WarmPoolStatus"):
        kept.pop(member, None)
    return kept | {"Tags": sorted(tags, key=lambda tag: tag["Key"])}


def test_the_shown_calls_start_the_same_job(page: Page, stored: Server) -> None:
    fill(page, "same-form", COMMAND)
    page.get_by_role("button", name="Add channel").click()
    page.get_by_role("textbox", name="Data of channel 1").fill("s3://digits/train/")
    page.get_by_label(re.compile("Split the files among the hosts")).check()
    page.get_by_role("textbox", name="Checkpoints").fill("s3://yard/checkpoints")
    page.get_by_label(re.compile("^Spot")).check()
    page.get_by_label("Time limit", exact=True).fill("1.5")
    page.get_by_label("Unit of the time limit", exact=True).select_option("hours")
    for number, (name, value) in enumerate(
        [("lr", "1e-3"), ("epochs", "3"), ("ratio", "0.25"), ("odd name", 'é "x" \\ $HOME `id`')], 1
    ):
        add_pair(page, "hyperparameter", number, name, value)
    add_pair(page, "variable", 1, "GREETING", "hello 🚂")
    add_pair(page, "variable", 2, "SUM", 'a"b\\c')
    add_pair(page, "tag", 1, "team", "vision + speech")
    answered(page)
    expect(preview_of(page)).to_contain_text("Starts now")
    page.get_by_role("button", name="Start the job").click()
    expect(page.get_by_role("heading", name="same-form")).to_be_visible()
    expected = described(stored, "same-form")
    assert expected["HyperParameters"]["odd name"] == 'é "x" \\ $HOME `id`'
    assert expected["Tags"] == [{"Key": "team", "Value": "vision + speech"}]
    assert expected["StoppingCondition"]["MaxRuntimeInSeconds"] == 5400

    page.get_by_role("link", name="Repeat").click()
    expect(page.get_by_label("Job name")).to_have_value("same-form-again")
    expect(page.get_by_label("Value of tag 1", exact=True)).to_have_value("vision + speech")
    for client in ("AWS CLI", "Python", "TOML"):
        name = f"same-{client.replace(' ', '-').lower()}"
        page.get_by_label("Job name").fill(name)
        expect(page.get_by_label("The call that starts the job", exact=True)).to_contain_text(name)
        run_code(stored, client, code_of(page, client))
        assert described(stored, name) == expected, client


def test_a_script_is_the_same_for_every_client(page: Page, stored: Server) -> None:
    fill(page, "script-form")
    page.get_by_role("radio", name="A script").check()
    page.get_by_role("textbox", name="Archive of the sources").fill("s3://digits/code/a.tar.gz")
    page.get_by_label("Script in the archive").fill("train.py")
    for number, (name, value) in enumerate(
        [("lr", "1e-3"), ("epochs", "3"), ("ratio", "0.25"), ("flag", "true"), ("text", 'a "b"')], 1
    ):
        add_pair(page, "hyperparameter", number, name, value)
    answered(page)
    cli = code_of(page, "AWS CLI")
    request = json.loads(cli[cli.index("'") + 1 : cli.rindex("'")])
    assert request["HyperParameters"] == {
        "lr": '"1e-3"',
        "epochs": "3",
        "ratio": "0.25",
        "flag": "true",
        "text": '"a \\"b\\""',
        "sagemaker_program": '"train.py"',
        "sagemaker_submit_directory": '"s3://digits/code/a.tar.gz"',
        "sagemaker_container_log_level": "20",
        "sagemaker_region": '"us-east-1"',
    }
    toml = code_of(page, "TOML")
    file = f"{stored.data}-script.toml"
    with open(file, "w", encoding="utf-8") as out:
        out.write(toml.split("<<'JOB'\n", 1)[1].split("\nJOB\n", 1)[0])
    done = subprocess.run(
        [PROGRAM, "submit", file, "--dry-run"],
        check=True,
        capture_output=True,
        text=True,
        env=stored.environment(),
    )
    assert json.loads(done.stdout) == request


def test_secrets_stay_out_of_links_calls_and_templates(page: Page, stored: Server) -> None:
    fill(page, "with-secret", "test ${#HF_TOKEN} = 7")
    page.get_by_role("button", name="Add variable").click()
    page.get_by_label("Name of variable 1", exact=True).fill("HF_TOKEN")
    value = page.get_by_label("Value of variable 1", exact=True)
    value.fill("hunter2")
    expect(page.get_by_role("checkbox", name=re.compile("Secret"))).to_be_checked()
    expect(value).to_have_attribute("type", "password")
    answered(page)
    for client in ("AWS CLI", "Python", "TOML"):
        code = code_of(page, client)
        assert "hunter2" not in code
        assert "<value of HF_TOKEN>" in code
    fragment = urllib.parse.urlsplit(page.url).fragment
    assert fragment.startswith("form=")
    assert "hunter2" not in page.url
    page.get_by_role("button", name="Save as template").click()
    page.get_by_role("dialog").get_by_label("Name").fill("with-secret")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as with-secret.")).to_be_visible()
    [template] = stored.boto("trainyard").list_job_templates()["Templates"]
    assert "hunter2" not in json.dumps(template, default=str)
    assert template["SecretEnvironment"] == ["HF_TOKEN"]

    shared = page.context.new_page()
    shared.goto(page.url)
    expect(shared.get_by_label("Job name")).to_have_value("with-secret")
    expect(shared.get_by_label("Name of variable 1", exact=True)).to_have_value("HF_TOKEN")
    expect(shared.get_by_label("Value of variable 1", exact=True)).to_have_value("")
    expect(shared.get_by_role("region", name="Filled in from the address")).to_be_visible()
    shared.close()

    page.get_by_role("button", name="Start the job").click()
    expect(page.get_by_role("heading", name="with-secret")).to_be_visible()
    jobs.wait_until(stored.boto("sagemaker"), "with-secret", ["Completed"])
    page.goto(console(stored, "/new?template=with-secret"))
    expect(page.get_by_label("Name of variable 1", exact=True)).to_have_value("HF_TOKEN")
    expect(page.get_by_label("Command", exact=True)).to_have_value("test ${#HF_TOKEN} = 7")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Deleted with-secret.")).to_be_visible()


def test_a_template_of_hostile_text_stays_text(page: Page, stored: Server) -> None:
    stored.boto("trainyard").put_job_template(
        TemplateName="hostile",
        Description=world.HOSTILE,
        TrainingJobRequest=json.dumps(
            {"HyperParameters": {world.HOSTILE: world.HOSTILE}, "RoleArn": world.HOSTILE}
        ),
    )
    page.goto(console(stored, "/new?template=hostile"))
    expect(page.get_by_label("Value of hyperparameter 1", exact=True)).to_have_value(world.HOSTILE)
    expect(page.get_by_text(world.HOSTILE).first).to_be_visible()
    answered(page)
    assert page.evaluate("window.broken") is None
    stored.boto("trainyard").delete_job_template(TemplateName="hostile")


def test_the_form_is_offered_with_permission_to_preview(browser: Browser, stored: Server) -> None:
    keys = world.user(stored, "no-starter", "trainyard:ListJobs", "trainyard:DescribeJob")
    page = open_context(browser).new_page()
    page.goto(console(stored))
    fill_keys(page, keys)
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    expect(page.get_by_role("link", name="New job")).to_be_hidden()
    page.context.close()
    keys = world.user(stored, "starter", "trainyard:PreviewJob")
    page = open_context(browser).new_page()
    page.goto(console(stored, "/new"))
    fill_keys(page, keys)
    expect(preview_of(page)).to_contain_text("not authorized to perform: sagemaker:CreateTraining")
    expect(page.get_by_role("region", name="Templates")).to_be_hidden()
    expect(page.get_by_role("button", name=re.compile("Browse"))).to_have_count(0)
    page.context.close()


def test_the_form_works_with_the_keyboard(page: Page, stored: Server) -> None:
    page.goto(console(stored, "/jobs"))
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    page.keyboard.press("+")
    expect(page.get_by_role("heading", name="New job")).to_be_visible()
    expect(page.get_by_label("Instance type")).to_be_visible()
    page.get_by_label("Job name").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("by-keyboard")
    for _ in range(3):
        page.keyboard.press("Tab")  # image, the kind, the command
    page.keyboard.type("echo typed")
    expect(page.get_by_label("Command", exact=True)).to_have_value("echo typed")
    fill(page, "by-keyboard", "echo typed")
    answered(page)
    button = page.get_by_role("button", name="Start the job")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="by-keyboard")).to_be_visible()
    jobs.wait_until(stored.boto("sagemaker"), "by-keyboard", ["Completed"])
