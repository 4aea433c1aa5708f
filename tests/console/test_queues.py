"""Tests the views of queues and machines: waiting jobs and their reasons, usage, and
permissions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console import world
from tests.console.world import console, fill_keys, open_context, signed_in
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def queued(server: Server) -> Server:
    world.start_queue(server)
    return server


@pytest.fixture
def page(browser: Browser, queued: Server) -> Iterator[Page]:
    one = signed_in(browser, queued)
    yield one
    one.context.close()


def view_of(browser: Browser, server: Server, keys: tuple[str, str], path: str) -> Page:
    page = open_context(browser).new_page()
    page.goto(console(server, path))
    fill_keys(page, keys)
    expect(page.get_by_role("button", name="Account")).to_be_visible()
    return page


def test_a_queue_shows_its_order_shares_and_reasons(page: Page, queued: Server) -> None:
    page.get_by_role("link", name="Queues").click()
    queue = page.get_by_role("region", name="nightly")
    expect(queue).to_contain_text("priority 7 · teams")
    expect(queue).to_contain_text("1 vCPU in use")
    expect(queue).to_contain_text("small, at most 1 vCPU")
    shares = queue.get_by_role("list", name="Shares of nightly").get_by_role("listitem")
    expect(shares).to_have_text(
        [re.compile("vision *100 % used, 100 % by weight"), re.compile("speech *uses nothing")]
    )
    batch = queued.boto("batch")
    front = batch.get_job_queue_snapshot(jobQueue="nightly")["frontOfQueue"]["jobs"]
    ids = [job["jobArn"].split("/")[-1] for job in front]
    named = {job["jobId"]: job["jobName"] for job in batch.describe_jobs(jobs=ids)["jobs"]}
    waiting = queue.get_by_role("list", name="Jobs that wait in nightly").get_by_role("listitem")
    assert len(ids) == 2
    expect(waiting).to_have_text([re.compile(f"{named[one]}.*vCPU", re.DOTALL) for one in ids])
    training = page.get_by_role("list", name="Training jobs that wait").get_by_role("listitem")
    expect(training).to_have_text(re.compile("waiting-1.*running-1", re.DOTALL))
    expect(page.get_by_role("list", name="Your quotas")).to_contain_text("2 of 40 instances")
    gang = page.get_by_role("row").filter(has=page.get_by_role("link", name="running-1"))
    expect(gang.get_by_role("cell").nth(1)).to_have_text("2")
    waiting.first.get_by_role("link").click()
    expect(page.get_by_role("region", name="Waiting to start")).to_be_visible()


def test_the_view_of_a_queue_updates_automatically(page: Page, queued: Server) -> None:
    page.goto(console(queued, "/queues"))
    waiting = page.get_by_role("list", name="Jobs that wait in nightly").get_by_role("listitem")
    expect(waiting).to_have_count(2)
    batch = queued.boto("batch")
    [running] = batch.list_jobs(jobQueue="nightly", jobStatus="RUNNING")["jobSummaryList"]
    batch.terminate_job(jobId=running["jobId"], reason="it has rendered enough")
    expect(waiting).to_have_count(1)


def test_machines_show_their_hosts(page: Page, queued: Server) -> None:
    page.get_by_role("link", name="Machines").click()
    box = page.get_by_role("article", name="box")
    # Two hosts of two CPUs, and a Batch job of one.
    expect(box).to_contain_text("1 of 6 free")
    expect(box.get_by_role("listitem").filter(has_text="running-1")).to_have_count(2)
    expect(page.get_by_text("All on one machine.").first).to_be_visible()
    fits = page.get_by_role("region", name="What fits now")
    fits.get_by_text("once jobs have ended").click()
    expect(fits.get_by_role("listitem").filter(has_text="ml.m5.large")).to_contain_text(
        "0 of 1 hosts"
    )
    gang = page.get_by_role("row").filter(has=page.get_by_role("link", name="running-1"))
    expect(gang.get_by_role("cell").nth(2)).to_have_text("4")
    page.keyboard.press("/")
    page.keyboard.type("nowhere")
    expect(box).to_be_hidden()
    expect(page).to_have_url(re.compile("q=nowhere"))
    page.get_by_label("Search by machine, rack or job").fill("running-1")
    expect(box).to_be_visible()
    batch = queued.boto("batch")
    for job in batch.list_jobs(jobQueue="nightly", jobStatus="RUNNING")["jobSummaryList"]:
        batch.terminate_job(jobId=job["jobId"], reason="its machine is watched")
    for job in batch.list_jobs(jobQueue="nightly", jobStatus="RUNNABLE")["jobSummaryList"]:
        batch.terminate_job(jobId=job["jobId"], reason="its machine is watched")
    expect(box).to_contain_text("2 of 6 free")  # the page was not loaded again
    box.get_by_role("link", name="running-1").first.click()
    expect(page.get_by_role("heading", name="running-1")).to_be_visible()


def test_views_that_a_principal_may_not_see_are_not_offered(
    browser: Browser, queued: Server
) -> None:
    keys = world.user(queued, "planner", "trainyard:ListMachines")
    page = view_of(browser, queued, keys, "/machines")
    box = page.get_by_role("article", name="box")
    expect(box.get_by_text("Another job").first).to_be_visible()
    expect(box).to_contain_text("of 6 free")
    assert "running-1" not in page.content(), "jobs have no names without trainyard:DescribeJob"
    links = page.get_by_role("navigation", name="Views").get_by_role("link")
    expect(links).to_have_text(["Machines"])
    page.keyboard.press("g")
    expect(page).to_have_url(console(queued, "/machines"))
    page.goto(console(queued, "/queues"))
    refused = page.get_by_role("region", name="The queues could not be read")
    expect(refused).to_contain_text("batch:DescribeJobQueues")
    page.context.close()


def test_a_queue_without_other_rights_has_its_name_only(browser: Browser, queued: Server) -> None:
    keys = world.user(queued, "guest", "batch:DescribeJobQueues")
    page = view_of(browser, queued, keys, "/queues")
    expect(page.get_by_role("region", name="nightly")).to_contain_text("No job waits.")
    assert "waiting-1" not in page.content()
    expect(page.get_by_role("region", name="Jobs that hold machines")).to_be_hidden()
    page.context.close()
