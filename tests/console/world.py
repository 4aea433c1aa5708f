"""Has helpers for the console's tests and screenshots: jobs of each kind, and a browser."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect

from tests import jobs
from tests.trainyard_server import PROGRAM, ROOT, TODAYS_AWS, Server, wait_for

CHROMIUM = "/usr/bin/chromium"
SECONDS_MAX = 90  # for what takes a second on a quiet machine
AXE = os.path.join(ROOT, "console", "node_modules", "axe-core", "axe.min.js")

# Texts that would have an effect if a page treated them as markup, and the signs of that effect.
HOSTILE = "<img src=x onerror=window.broken=1><script>window.broken=1</script>"
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 860}

# Capacity for the two hosts of a job and one more, so a second job of two hosts waits.
CONFIG = """
[[access_key]]
id = "AKIAOWNER00000000000"
secret = "owner-secret"
user = "owner"
[[access_key]]
id = "AKIAPOOR000000000000"
secret = "poor-secret"
user = "poor"
[[user]]
name = "poor"
policies = ["entry"]
[[policy]]
name = "entry"
document = '''{"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": "trainyard:CreateConsoleSession", "Resource": "*"}]}'''
[jobs]
stop_grace_seconds = 2
[[quota]]
instance_type = "ml.t3.medium"
count = 40
[[machine]]
name = "box"
cpus = 6.0
memory_gib = 12.0
[regions.'eu-west-1']
"""
# If hosts have a price, the rule "cheapest" places jobs.
PRICES = """
[[prices.instance]]
type = "ml.t3.medium"
region = "us-east-1"
on_demand = 0.02
spot = 0.01
"""
OWNER = ("AKIAOWNER00000000000", "owner-secret")
POOR = ("AKIAPOOR000000000000", "poor-secret")

CONDITION = {
    "Statistic": "Average",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 1.5,
    "ComparisonOperator": "GreaterThanThreshold",
}
METRICS = [
    {"Name": "train:loss", "Regex": r"loss=(\S+)"},
    {"Name": "train:epoch", "Regex": r"epoch=(\S+)"},
]
# Prints a loss that falls, until the job is stopped.
TRAIN = (
    'i=1; while :; do echo step $i loss=$(awk "BEGIN{print 2/$i+0.1}") on $(hostname);'
    " i=$((i+1)); sleep 1; done"
)
# Two steps in each of three epochs.
EPOCHS = (
    "for epoch in 1 2 3; do for step in 1 2; do"
    ' echo epoch=$epoch loss=$(awk "BEGIN{print 2/($epoch+$step)}"); sleep 1; done; done'
)
FAIL = (
    "echo epoch 1; echo '<b>not bold</b>'; printf '\\033[31mred\\033[0m\\n';"
    " echo 'Traceback (most recent call last):';"
    " echo '  File \"train.py\", line 88, in step'; echo 'ValueError: the loss is NaN'; exit 3"
)


def start_job(server: Server, name: str, script: str, **more: Any) -> None:
    # Longer than the tests: the running job occupies its machine until a test stops it.
    more = {"StoppingCondition": {"MaxRuntimeInSeconds": 7200}} | more
    request = jobs.request(name, script, **more)
    request["AlgorithmSpecification"]["MetricDefinitions"] = METRICS
    server.boto("sagemaker").create_training_job(**request)


def start_queue(server: Server) -> None:
    """Creates a fair-share queue of Batch: a job of one share runs, and one of each of two others
    waits."""
    batch = server.boto("batch")
    batch.create_compute_environment(
        computeEnvironmentName="small",
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 1, "subnets": ["any"]},
    )
    policy = batch.create_scheduling_policy(
        name="teams",
        fairsharePolicy={
            "shareDistribution": [
                {"shareIdentifier": "vision", "weightFactor": 0.5},
                {"shareIdentifier": "speech"},
            ]
        },
    )
    batch.create_job_queue(
        jobQueueName="nightly",
        priority=7,
        schedulingPolicyArn=policy["arn"],
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "small"}],
    )
    batch.register_job_definition(
        jobDefinitionName="shell",
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["/bin/sh", "-c", "sleep 3600"],
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "64"},
            ],
        },
    )
    for name, share in (("render-1", "vision"), ("render-2", "vision"), ("speech-1", "speech")):
        batch.submit_job(
            jobName=name, jobQueue="nightly", jobDefinition="shell", shareIdentifier=share
        )
        if name == "render-1":
            wait_for(
                lambda: batch.list_jobs(jobQueue="nightly", jobStatus="RUNNING")["jobSummaryList"],
                name,
            )


def cluster(server: Server, *arguments: str) -> None:
    done = subprocess.run(
        [PROGRAM, *arguments],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode in (0, 3), f"{arguments}: {done.stdout}\n{done.stderr}"  # 3: rows failed


def run_campaign(server: Server, folder: pathlib.Path, name: str, query: str, script: str) -> None:
    """Runs a campaign in us-east-1 to its end; its data is copied there."""
    campaign = {
        "name": name,
        "query": query,
        "placement": {
            "rule": "cheapest",
            "regions": ["us-east-1"],
            "copy_to": "s3://copies-{job.region}/{name}/",
        },
        "training_job": {
            "image": "trainyard/host",
            "command": ["/bin/sh", "-c"],
            "arguments": [script],
            "instance_type": "ml.t3.medium",
            "volume_gib": 1,
            "max_runtime_seconds": 300,
            "channels": {"train": "{job.data}"},
        },
    }
    file = folder / f"{name}.json"
    file.write_text(json.dumps(campaign), encoding="utf-8")
    cluster(server, "campaign", "run", str(file))


def start_alarm(server: Server, name: str) -> str:
    """Creates an alarm in state ALARM, with half an hour of values. Returns its ARN."""
    cloudwatch = server.boto("cloudwatch")
    now = time.time()
    cloudwatch.put_metric_data(
        Namespace="team",
        MetricData=[
            {"MetricName": "loss", "Timestamp": now - 60 * minute, "Value": 2.0 + minute / 10}
            for minute in range(30)
        ],
    )
    cloudwatch.put_metric_alarm(
        AlarmName=name,
        AlarmDescription=HOSTILE,
        TreatMissingData="breaching",
        Namespace="team",
        MetricName="loss",
        **CONDITION,
    )
    return str(cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"][0]["AlarmArn"])


def start_dashboard(server: Server, name: str, alarm: str, text: str, label: str) -> None:
    """Creates a dashboard with a widget of each supported type, and an unsupported one."""
    widgets = [
        {"type": "text", "properties": {"markdown": text}},
        {
            "type": "metric",
            "x": 6,
            "width": 12,
            "properties": {
                "title": "The loss",
                "region": "us-east-1",
                "period": 60,
                "metrics": [["team", "loss", {"label": label}]],
                "annotations": {"horizontal": [{"value": 1.5, "label": "most"}]},
            },
        },
        {"type": "alarm", "y": 6, "properties": {"title": "Alarms", "alarms": [alarm]}},
        {"type": "log", "y": 6, "x": 6, "properties": {"query": "fields @message"}},
    ]
    server.boto("cloudwatch").put_dashboard(
        DashboardName=name, DashboardBody=json.dumps({"widgets": widgets})
    )


def launch(playwright: Playwright) -> Browser:
    # Chromium's sandbox does not work as root, and the pages are trusted.
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def console(server: Server, path: str = "") -> str:
    return f"http://{server.listen}/console{path}"


def link(server: Server) -> str:
    """Returns a link that signs in as the owner, once."""
    done = subprocess.run(
        [PROGRAM, "console", "--data", server.data],
        check=True,
        capture_output=True,
        text=True,
        env=server.environment(),
    )
    return done.stdout.strip()


def run_shell(server: Server, script: str) -> None:
    """Runs a script as a user with a configured AWS CLI."""
    environment = server.environment()
    environment["PATH"] = os.path.dirname(TODAYS_AWS) + ":" + environment["PATH"]
    subprocess.run(["/bin/sh", "-e", script], check=True, env=environment, timeout=SECONDS_MAX)


def open_context(browser: Browser, **more: Any) -> BrowserContext:
    context = browser.new_context(**{"viewport": DESKTOP} | more)
    context.set_default_timeout(SECONDS_MAX * 1000)
    return context


def signed_in(browser: Browser, server: Server, **more: Any) -> Page:
    """Opens a page that shows the jobs, signed in as the owner."""
    page = open_context(browser, **more).new_page()
    page.goto(link(server))
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    return page


def fill_keys(page: Page, keys: tuple[str, str]) -> None:
    page.get_by_label("Access key ID").fill(keys[0])
    page.get_by_label("Secret access key").fill(keys[1])
    page.get_by_role("button", name="Sign in").click()


def violations(page: Page) -> list[str]:
    """Returns the violations of WCAG 2.1 AA that axe finds on a page."""
    with open(AXE, encoding="utf-8") as file:
        page.evaluate(f"() => {{ {file.read()} }}")
    found = page.evaluate(
        "() => axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})"
    )
    return [
        f"{one['id']}: {one['help']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


def user(server: Server, name: str, *actions: str) -> tuple[str, str]:
    """Creates a user that may call `actions` and open the console; returns the key."""
    iam = server.boto("iam")
    iam.create_user(UserName=name)
    statement = {
        "Effect": "Allow",
        "Action": ["trainyard:CreateConsoleSession", *actions],
        "Resource": "*",
    }
    iam.put_user_policy(
        UserName=name,
        PolicyName="some",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


def names_of(page: Page) -> list[str]:
    return page.locator("a.name").all_inner_texts()


def hears(page: Page, pattern: str) -> Callable[[], None]:
    """Collects the requests of a page; the result asserts that none has the pattern."""
    sent: list[str] = []
    page.on(
        "request",
        lambda request: sent.append(
            f"{request.url} {request.all_headers()} {request.post_data or ''}"
        ),
    )

    def check() -> None:
        assert sent
        for one in sent:
            assert not re.search(pattern, one), one

    return check
