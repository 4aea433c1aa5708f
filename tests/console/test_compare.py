"""Tests the comparison of jobs: the selection in the list, the table, the curves, and the link."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests import jobs
from tests.console import world
from tests.console.world import console, signed_in
from tests.trainyard_server import Server

RATES = {"rate-1": "0.1", "rate-2": "0.001"}


@pytest.fixture(scope="module")
def compared(server: Server) -> Server:
    """Starts two more jobs, which differ in their learning rate."""
    for name, rate in RATES.items():
        world.start_job(
            server,
            name,
            world.EPOCHS,
            HyperParameters={"learning-rate": rate, "epochs": "3", "<b>bold</b>": world.HOSTILE},
        )
    for name in RATES:
        jobs.wait_until(server.boto("sagemaker"), name, ["Completed"])
    return server


@pytest.fixture
def page(browser: Browser, compared: Server) -> Iterator[Page]:
    one = signed_in(browser, compared)
    yield one
    one.context.close()


def row(page: Page, name: str | re.Pattern[str]) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))


def test_jobs_are_selected_in_the_list_and_the_link_names_them(
    page: Page, compared: Server
) -> None:
    for name in RATES:
        page.get_by_label(f"Compare {name}", exact=True).check()
    expect(page.get_by_role("status").filter(has_text="2 jobs chosen")).to_be_visible()
    expect(page).to_have_url(re.compile(r"jobs=rate-1%2Crate-2"))
    page.get_by_label("Search by name").fill("failed")
    expect(page.get_by_role("link", name="rate-1", exact=True)).to_be_hidden()
    page.get_by_label("Compare failed-1", exact=True).check()  # the others stay chosen
    page.get_by_role("region", name="Chosen jobs").get_by_role("link", name="Compare").click()
    expect(page.get_by_role("heading", name="Compare")).to_be_visible()
    shared = page.context.new_page()
    shared.goto(page.url)
    for name in [*RATES, "failed-1"]:
        expect(shared.get_by_role("columnheader").filter(has_text=name)).to_be_visible()
    shared.get_by_role("button", name="Leave out failed-1").click()
    expect(shared.get_by_role("columnheader").filter(has_text="failed-1")).to_be_hidden()
    expect(shared).to_have_url(console(compared, "/compare?jobs=rate-1%2Crate-2"))
    shared.get_by_role("link", name="Choose jobs").click()
    expect(shared.get_by_label("Compare rate-2", exact=True)).to_be_checked()
    shared.get_by_role("button", name="Clear").click()
    expect(shared.get_by_label("Compare rate-2", exact=True)).not_to_be_checked()


def test_the_table_shows_what_differs(page: Page, compared: Server) -> None:
    page.goto(console(compared, "/compare?jobs=rate-1,rate-2,missing-1"))
    rates = row(page, re.compile("^learning-rate.*differs$"))
    expect(rates.get_by_role("cell")).to_have_text(list(RATES.values()))
    expect(row(page, "epochs").get_by_role("cell")).to_have_text(["3", "3"])
    expect(row(page, "train:loss").get_by_role("cell")).to_have_text(["0.4", "0.4"])
    expect(row(page, "Status").get_by_role("cell")).to_have_text(["Completed", "Completed"])
    # Hyperparameters are shown as text, not as markup.
    expect(row(page, "<b>bold</b>").get_by_role("cell").first).to_have_text(world.HOSTILE)
    assert page.evaluate("window.broken") is None
    page.get_by_label("Only differences").check()
    expect(row(page, "epochs")).to_be_hidden()
    expect(rates).to_be_visible()
    missing = page.get_by_role("region", name="missing-1")
    missing.get_by_role("button", name="Leave it out").click()
    expect(missing).to_be_hidden()
    expect(page).to_have_url(re.compile("only=different"))


def test_plots_compare_curves_by_time_step_or_epoch(page: Page, compared: Server) -> None:
    page.goto(console(compared, "/compare?jobs=rate-1,rate-2"))
    plot = page.get_by_role("figure").filter(has_text="train:loss")
    expect(plot.locator("canvas")).to_be_visible()
    expect(plot.get_by_role("listitem")).to_have_text(["rate-1 0.4", "rate-2 0.4"])
    coordinates = page.get_by_role("region", name="Parallel coordinates")
    expect(coordinates.locator("text.name")).to_have_text(
        ["learning-rate", "train:epoch", "train:loss"]
    )
    for axis in ("step", "epoch"):
        page.get_by_role("button", name=axis.capitalize(), exact=True).click()
        expect(page).to_have_url(re.compile(f"x={axis}"))
        expect(plot.locator("canvas")).to_be_visible()
    page.goto(console(compared, "/jobs/rate-1?x=step"))
    expect(plot).to_contain_text("at step 6")
    page.get_by_role("button", name="Epoch", exact=True).click()
    expect(plot).to_contain_text(re.compile(r"at epoch 3(\.\d+)?"))
    page.get_by_role("button", name="Time", exact=True).click()
    expect(plot).to_contain_text(re.compile(r"at \d+ s"))
    page.goto(console(compared, "/jobs/running-1"))
    expect(page.get_by_role("button", name="Time", exact=True)).to_be_visible()


def test_a_change_of_the_network_does_not_disturb_the_page(page: Page, compared: Server) -> None:
    failures: list[str] = []

    def fail_once(route: Route) -> None:
        if len(failures) < 2 and "GetMetricData" in route.request.url:
            failures.append(route.request.url)
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/console/api/**", fail_once)
    page.goto(console(compared, "/compare?jobs=rate-1,rate-2"))
    plot = page.get_by_role("figure").filter(has_text="train:loss")
    expect(plot.get_by_role("listitem")).to_have_text(["rate-1 0.4", "rate-2 0.4"])
    assert len(failures) == 2
    expect(page.get_by_text("could not be read")).to_be_hidden()


def test_a_comparison_updates_while_a_job_runs(page: Page, compared: Server) -> None:
    page.goto(console(compared, "/compare?jobs=running-1,rate-1"))
    plot = page.get_by_role("figure").filter(has_text="train:loss")
    expect(plot).to_contain_text("running-1")
    last = row(page, "train:loss").get_by_role("cell").first
    before = last.inner_text()
    expect(last).not_to_have_text(before)
    expect(last).to_have_text(re.compile(r"0\.\d+"))


def test_jobs_can_be_selected_and_compared_with_the_keyboard(page: Page) -> None:
    other = page.get_by_role("link", name="failed-1", exact=True)
    expect(other).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("rate-")
    expect(other).to_be_hidden()
    expect(page.get_by_role("link", name="rate-1", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    for _ in RATES:
        page.keyboard.press("j")
        page.keyboard.press("x")
    expect(page.get_by_role("status").filter(has_text="2 jobs chosen")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_role("columnheader").filter(has_text="rate-2")).to_be_visible()
