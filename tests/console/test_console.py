"""Tests the console in Chromium, on a real server with real jobs."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import jobs
from tests.console import world
from tests.console.world import console, fill_keys, link, open_context, signed_in
from tests.trainyard_server import Server, wait_for

VIEWS = [
    "/jobs",
    "/jobs/running-1",
    "/jobs/running-1/log",
    "/jobs/running-1/configuration",
    "/jobs/waiting-1",
    "/jobs/failed-1",
    "/jobs/failed-1/log?find=error",
    "/jobs/failed-1/configuration",
    "/jobs?jobs=running-1,failed-1",
    "/compare?jobs=running-1,failed-1&x=step",
    "/compare",
    "/queues",
    "/machines",
    "/data",
    "/data?bucket=yard",
    "/new",
    "/new?from=running-1",
    "/campaigns",
    "/alarms",
    "/dashboards",
    "/users",
    "/users?user=poor",
    "/jobs/nothing-1",
]
ROUTES = [
    ("GET", "/session"),
    ("DELETE", "/session"),
    ("GET", "/events?region=us-east-1"),
    ("GET", "/events?region=us-east-1&job=running-1"),
    ("POST", "/api/trainyard/ListJobs?region=us-east-1"),
    ("POST", "/api/trainyard/DescribeJob?region=us-east-1"),
    ("POST", "/api/trainyard/ExplainJob?region=us-east-1"),
    ("POST", "/api/trainyard/DescribeJobTime?region=us-east-1"),
    ("POST", "/api/trainyard/GetJobTimeline?region=us-east-1"),
    ("POST", "/api/sagemaker/DescribeTrainingJob?region=us-east-1"),
    ("POST", "/api/cloudwatch/GetMetricStatistics?region=us-east-1"),
    ("POST", "/api/logs/GetLogEvents?region=us-east-1"),
    ("POST", "/api/trainyard/ListMachines?region=us-east-1"),
    ("POST", "/api/trainyard/PreviewJob?region=us-east-1"),
    ("POST", "/api/trainyard/ListJobTemplates?region=us-east-1"),
    ("POST", "/api/trainyard/PutJobTemplate?region=us-east-1"),
    ("POST", "/api/trainyard/DeleteJobTemplate?region=us-east-1"),
    ("POST", "/api/sagemaker/CreateTrainingJob?region=us-east-1"),
    ("POST", "/rights?region=us-east-1"),
    ("POST", "/api/trainyard/ListCampaigns?region=us-east-1"),
    ("POST", "/api/trainyard/DescribeCampaign?region=us-east-1"),
    ("POST", "/api/cloudwatch/DescribeAlarms?region=us-east-1"),
    ("POST", "/api/cloudwatch/DescribeAlarmHistory?region=us-east-1"),
    ("POST", "/api/cloudwatch/GetMetricData?region=us-east-1"),
    ("POST", "/api/cloudwatch/ListDashboards?region=us-east-1"),
    ("POST", "/api/cloudwatch/GetDashboard?region=us-east-1"),
    ("POST", "/api/iam/ListUsers?region=us-east-1"),
    ("POST", "/api/iam/CreateAccessKey?region=us-east-1"),
    ("POST", "/api/iam/AttachUserPolicy?region=us-east-1"),
    ("POST", "/api/sagemaker/ListTags?region=us-east-1"),
    ("POST", "/api/batch/DescribeJobQueues?region=us-east-1"),
    ("POST", "/api/batch/GetJobQueueSnapshot?region=us-east-1"),
    ("GET", "/objects?what=buckets&region=us-east-1"),
    ("GET", "/objects?what=objects&bucket=yard&region=us-east-1"),
    ("GET", "/objects?what=text&bucket=yard&key=x&region=us-east-1"),
    ("POST", "/api/nothing/Nothing"),
]


def ready(page: Page) -> None:
    """Waits until a view shows its data."""
    expect(page.get_by_role("heading").first).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_attached()


# -- signing in and out


def test_an_access_key_signs_in_and_its_secret_stays_in_the_browser(
    browser: Browser, server: Server
) -> None:
    page = open_context(browser).new_page()
    check = world.hears(page, "owner-secret")
    page.goto(console(server, "/jobs?status=Failed"))
    fill_keys(page, (world.OWNER[0], "guess"))
    expect(page.get_by_role("alert")).to_contain_text("signature")
    fill_keys(page, world.OWNER)
    expect(page.get_by_role("link", name="failed-1", exact=True)).to_be_visible()
    assert page.url == console(server, "/jobs?status=Failed"), "the requested view"
    check()
    [cookie] = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/console")
    assert page.evaluate("document.cookie") == ""
    page.context.close()


def test_a_link_signs_in_once(browser: Browser, server: Server) -> None:
    address = link(server)
    page = open_context(browser).new_page()
    check = world.hears(page, address.split("#")[1] + ".*/console/(api|jobs)")
    page.goto(address)
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    assert "#" not in page.url
    check()
    page.context.close()
    other = open_context(browser).new_page()
    other.goto(address)
    expect(other.get_by_role("alert")).to_contain_text("used already")
    other.context.close()


def test_signing_out_ends_the_session_everywhere(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    other = page.context.new_page()
    other.goto(console(server, "/jobs"))
    expect(other.get_by_role("heading", name="Jobs")).to_be_visible()
    page.get_by_role("button", name="Account").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    # The event stream of the other page ends with the session.
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    page.context.close()


def test_an_inactive_key_ends_its_sessions(browser: Browser, server: Server) -> None:
    iam = server.boto("iam")
    iam.create_user(UserName="ann")
    iam.put_user_policy(
        UserName="ann",
        PolicyName="all",
        PolicyDocument='{"Version": "2012-10-17", "Statement":'
        ' [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}',
    )
    key = iam.create_access_key(UserName="ann")["AccessKey"]
    page = open_context(browser).new_page()
    page.goto(console(server))
    fill_keys(page, (key["AccessKeyId"], key["SecretAccessKey"]))
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    iam.update_access_key(UserName="ann", AccessKeyId=key["AccessKeyId"], Status="Inactive")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.context.close()


# -- without a session, and without permissions


def test_without_a_session_nothing_is_revealed(server: Server) -> None:
    answers = []
    for method, path in [("GET", ""), ("GET", "/jobs/running-1"), ("GET", "/assets/x.js"), *ROUTES]:
        request = urllib.request.Request(
            console(server, path),
            method=method,
            data=b"{}" if method == "POST" else None,
            headers={"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=world.SECONDS_MAX) as answer:
                status, headers, body = answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as refused:
            status, headers, body = refused.code, refused.headers, refused.read().decode()
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "Server" not in headers
        answers.append((method, path, status, body))
    for method, path, status, body in answers:
        if (method, path) == ("DELETE", "/session"):
            assert (status, body) == (204, ""), "nothing was open"
        elif (method, path) in ROUTES:
            assert (status, body) == (401, '{"message":"Sign in."}'), path
        else:
            assert status == 200 and "Sign in" in body, path
        for secret in ("running-1", "123456789012", "us-east-1", "version", "0.1.0"):
            assert secret not in body, (path, secret)


def test_pages_show_what_the_principal_may_see(browser: Browser, server: Server) -> None:
    page = open_context(browser).new_page()
    page.goto(console(server))
    fill_keys(page, world.POOR)
    expect(page.get_by_text("not authorized to perform: trainyard:ListJobs")).to_be_visible()
    page.goto(console(server, "/jobs/running-1/log"))
    expect(page.get_by_text("not authorized to perform: trainyard:DescribeJob")).to_be_visible()
    for method, path in ROUTES[2:]:
        status = page.evaluate(
            "async ([method, url]) => (await fetch(url, {method, body: method === 'POST' ?"
            " JSON.stringify({JobName: 'running-1', TrainingJobName: 'running-1'}) :"
            " undefined, headers: {'content-type': 'application/json'}})).status",
            [method, console(server, path)],
        )
        assert status in (400, 403, 404), (path, status)
    assert "step" not in page.content()
    page.context.close()


# -- looking at jobs


def test_the_page_of_a_job_updates_until_its_end(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    ready(page)
    world.start_job(server, "live-1", world.TRAIN)
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="live-1", exact=True))
    expect(row).to_contain_text("Running")  # the list was not loaded again
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", name="live-1")).to_be_visible()
    plot = page.get_by_role("figure").filter(has_text="train:loss")
    expect(plot.locator("canvas")).to_be_visible()
    expect(plot).to_contain_text(re.compile(r"([3-9]|\d\d) points"))
    page.get_by_role("button", name="Log scale").click()
    expect(page).to_have_url(re.compile("scale=log"))
    page.get_by_label("Smoothing").fill("0.8")
    expect(page).to_have_url(re.compile("smooth=0.8"))
    page.get_by_role("tab", name="Log").click()
    log = page.get_by_role("log")
    expect(log).to_contain_text("step 3 loss=")
    last = int(re.findall(r"step (\d+)", log.inner_text())[-1])
    expect(log).to_contain_text(f"step {last + 2} ")
    server.boto("sagemaker").stop_training_job(TrainingJobName="live-1")
    expect(page.locator(".status")).to_have_text("Stopped")
    page.get_by_role("tab", name="Overview").click()
    expect(page.get_by_role("region", name="Phases")).to_contain_text("Stopped")
    page.context.close()


def test_a_waiting_job_shows_its_pending_reason(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="waiting-1", exact=True))
    expect(row).to_contain_text("Waiting")
    expect(row).to_contain_text("running-1")  # which holds what it needs
    row.get_by_role("link").click()
    expect(page.get_by_role("region", name="Waiting to start")).to_contain_text("running-1")
    page.context.close()


def test_a_waiting_job_shows_what_would_make_it_start(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    page.goto(console(server, "/jobs/waiting-1"))
    explained = page.get_by_role("region", name="What would make it start")
    expect(explained).to_contain_text("If nothing changes, it starts in")
    changes = explained.get_by_role("list").get_by_role("listitem")
    expect(changes.filter(has_text="add 1 machine like box")).to_contain_text("now")
    changes.get_by_role("link", name="stop training-job/running-1, which runs").click()
    expect(page.get_by_role("heading", name="running-1")).to_be_visible()
    expect(explained).to_be_hidden()
    page.context.close()


def test_an_explanation_does_not_reveal_other_jobs(browser: Browser, server: Server) -> None:
    keys = world.user(server, "planner-of-one", "trainyard:ListJobs")
    one = "arn:aws:trainyard:*:*:job/waiting-1"
    server.boto("iam").put_user_policy(
        UserName="planner-of-one",
        PolicyName="one",
        PolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": ["trainyard:DescribeJob", "trainyard:ExplainJob"],
                        "Resource": one,
                    }
                ],
            }
        ),
    )
    page = open_context(browser).new_page()
    page.goto(console(server))
    fill_keys(page, keys)
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    with page.expect_response(re.compile("/ExplainJob")) as answered:
        page.goto(console(server, "/jobs/waiting-1"))
    text = answered.value.text()
    assert "held by another job" in text
    assert "running-1" not in text
    page.context.close()


def test_a_job_shows_how_its_time_was_used(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    page.goto(console(server, "/jobs/failed-1"))
    time = page.get_by_role("region", name="Where the time went")
    expect(time).to_contain_text(re.compile(r"Effective training time \d+\.\d %, goodput \d+"))
    expect(time.get_by_role("listitem").filter(has_text="Training")).to_have_count(1)
    page.context.close()


def test_the_timeline_of_a_job_can_be_downloaded(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    page.goto(console(server, "/jobs/failed-1"))
    part = page.get_by_role("region", name="Timeline", exact=True)
    with page.expect_download() as downloaded:
        part.get_by_role("button", name="Download the trace").click()
    assert downloaded.value.suggested_filename == "failed-1.trace.json"
    with open(downloaded.value.path(), encoding="utf-8") as file:
        trace = json.load(file)
    assert trace["otherData"]["job"] == "failed-1"
    names = {event["name"] for event in trace["traceEvents"]}
    assert {"attempt 1", "Training", "algo-1", "running"} <= names, names
    page.context.close()


def test_filters_and_search_are_in_the_url(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    page.get_by_role("button", name="Failed", exact=True).click()
    expect(page.get_by_role("link", name="running-1", exact=True)).to_be_hidden()
    expect(page.get_by_role("link", name="failed-1", exact=True)).to_be_visible()
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_label("Search by name").fill("running")
    expect(page.get_by_role("link", name="failed-1", exact=True)).to_be_hidden()
    shared = page.context.new_page()
    shared.goto(page.url)
    expect(shared.get_by_role("link", name="running-1", exact=True)).to_be_visible()
    assert world.names_of(shared) == ["running-1"]
    page.context.close()


def test_a_failed_job_shows_its_failure_reason(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    page.goto(console(server, "/jobs/failed-1"))
    failure = page.get_by_role("region", name="The job failed")
    expect(failure).to_contain_text("ValueError: the loss is NaN")
    expect(page.get_by_label("Last lines of the log")).to_contain_text("Traceback")
    failure.get_by_role("link", name="Show the error in the log").click()
    expect(page.locator(".line.current")).to_contain_text("Traceback")
    page.get_by_label("Search the log").fill("valueerror")
    expect(page.get_by_text("of 1")).to_be_visible()
    page.get_by_role("button", name="Next match").click()
    expect(page.locator(".line.current mark")).to_have_text("ValueError")
    page.get_by_role("tab", name="Configuration").click()
    expect(page.get_by_text("epochs", exact=True)).to_be_visible()
    call = page.get_by_label("The call that repeats the job", exact=True)
    expect(call).to_contain_text("aws sagemaker create-training-job --region us-east-1")
    page.context.close()


def test_the_log_shows_all_hosts_or_one(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    page.goto(console(server, "/jobs/running-1/log"))
    log = page.get_by_role("log")
    expect(log.locator(".host", has_text="algo-2").first).to_be_visible()
    expect(log.locator(".host", has_text="algo-1").first).to_be_visible()
    page.get_by_label("Host", exact=True).select_option("algo-2")
    expect(log.locator(".host")).to_have_count(0)
    expect(log).to_contain_text("on algo-2")
    assert "on algo-1" not in log.inner_text()
    page.context.close()


def test_the_shown_command_starts_a_copy_of_the_job(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    page.goto(console(server, "/jobs/failed-1/configuration"))
    call = page.get_by_label("The call that repeats the job", exact=True).inner_text()
    script = server.data + "-again.sh"
    with open(script, "w", encoding="utf-8") as file:
        file.write(call)
    world.run_shell(server, script)
    again = jobs.wait_until(server.boto("sagemaker"), "failed-1-again", ["Failed"])
    assert again["HyperParameters"] == {"note": world.HOSTILE, "epochs": "3"}
    page.context.close()


def test_a_batch_job_has_an_overview_and_a_log(browser: Browser, server: Server) -> None:
    batch = server.boto("batch")
    batch.create_compute_environment(
        computeEnvironmentName="machines",
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 8, "subnets": ["any"]},
    )
    batch.create_job_queue(
        jobQueueName="nightly",
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "machines"}],
    )
    batch.register_job_definition(
        jobDefinitionName="shell",
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["/bin/sh", "-c", "echo from batch; exit 4"],
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "64"},
            ],
        },
    )
    name = "nightly_-" + "x" * 100  # longer than a line, with every character that is allowed
    batch.submit_job(jobName=name, jobQueue="nightly", jobDefinition="shell")
    page = signed_in(browser, server)
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name))
    expect(row).to_contain_text("Failed")
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_role("region", name="The job failed")).to_be_visible()
    page.get_by_role("tab", name="Log").click()
    expect(page.get_by_role("log")).to_contain_text("from batch")
    page.context.close()


# -- what jobs write is text


def test_texts_of_jobs_are_not_interpreted_as_markup(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    world.start_job(
        server,
        "hostile-1",
        f"echo '{world.HOSTILE}'; echo 'loss=1'; printf 'a\\033[2Jb\\007\\n';"
        f" echo '{world.HOSTILE}' >/opt/ml/output/failure; exit 1",
        AlgorithmSpecification={},
        HyperParameters={world.HOSTILE: world.HOSTILE},
    )
    jobs.wait_until(server.boto("sagemaker"), "hostile-1", ["Failed"])
    page.goto(console(server, "/jobs/hostile-1"))
    expect(page.get_by_role("region", name="The job failed")).to_contain_text(world.HOSTILE)
    page.goto(console(server, "/jobs/hostile-1/log"))
    expect(page.get_by_role("log")).to_contain_text(world.HOSTILE)
    expect(page.get_by_role("log")).to_contain_text("a^[[2Jb^G")
    page.goto(console(server, "/jobs/hostile-1/configuration"))
    expect(page.get_by_text(world.HOSTILE).first).to_be_visible()
    page.goto(console(server, f"/jobs/{urllib.parse.quote(world.HOSTILE, safe='')}"))
    expect(page.get_by_role("region")).to_be_visible()
    page.goto(console(server, f"/jobs?q={urllib.parse.quote(world.HOSTILE)}"))
    ready(page)
    assert page.evaluate("window.broken") is None
    assert not dialogs
    page.context.close()


# -- for everyone


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violations(browser: Browser, server: Server, theme: str) -> None:
    page = signed_in(browser, server, color_scheme=theme, reduced_motion="reduce")
    for view in VIEWS:
        page.goto(console(server, view))
        ready(page)
        assert not (found := world.violations(page)), (view, found)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert not (found := world.violations(page)), found
    anonymous = open_context(browser, color_scheme=theme).new_page()
    anonymous.goto(console(server))
    expect(anonymous.get_by_role("heading", name="Sign in")).to_be_visible()
    assert not (found := world.violations(anonymous)), found
    page.context.close()
    anonymous.context.close()


def test_a_phone_shows_every_view_without_scrolling_sideways(
    browser: Browser, server: Server
) -> None:
    page = signed_in(browser, server, viewport=world.PHONE)
    for view in VIEWS:
        page.goto(console(server, view))
        ready(page)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= world.PHONE["width"], view
        account = page.get_by_role("button", name="Account").bounding_box()
        assert account["x"] + account["width"] <= world.PHONE["width"]
    page.context.close()


def test_all_views_work_with_the_keyboard(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    expect(page.get_by_role("link", name="failed-1", exact=True)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("failed-1")
    expect(page).to_have_url(re.compile("q=failed-1"))
    wait_for(lambda: "running-1" not in world.names_of(page), "the search")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/jobs/failed-1"))
    page.keyboard.press("2")
    expect(page.get_by_role("tab", name="Log")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("log")).to_contain_text("Traceback")
    page.keyboard.press("e")
    expect(page.locator(".line.current")).to_contain_text("Traceback")
    before = page.locator("html").get_attribute("data-theme")
    page.keyboard.press("t")
    expect(page.locator("html")).not_to_have_attribute("data-theme", before or "")
    for key, heading in (("q", "Queues"), ("m", "Machines"), ("g", "Jobs")):
        page.keyboard.press(key)
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    page.context.close()


def test_pages_fetch_nothing_from_other_servers(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    addresses: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for view in VIEWS[:-1]:
        page.goto(console(server, view))
        ready(page)
    assert all(address.startswith(console(server)) for address in addresses), addresses
    assert not complaints, "also what the content policy forbids"
    page.context.close()


def test_a_restart_of_the_server_requires_a_new_sign_in(browser: Browser, server: Server) -> None:
    page = signed_in(browser, server)
    ready(page)
    server.stop()
    server.start()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.context.close()
