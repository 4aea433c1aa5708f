"""Tests the views of alarms and dashboards: states, plots with thresholds, history, hostile
bodies."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console import world
from tests.console.world import console, fill_keys, open_context, signed_in
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def watched(server: Server) -> Server:
    """Makes an alarm in state ALARM, one with too little data, and a dashboard."""
    arn = world.start_alarm(server, "rings")
    nothing = {"Namespace": "team", "MetricName": "nothing"}
    server.boto("cloudwatch").put_metric_alarm(AlarmName="quiet", **nothing, **world.CONDITION)
    world.start_dashboard(server, "team", arn, f"# Team\n{world.HOSTILE}", world.HOSTILE)
    return server


@pytest.fixture
def page(browser: Browser, watched: Server) -> Iterator[Page]:
    one = signed_in(browser, watched)
    yield one
    one.context.close()


def test_alarms_show_their_states_and_conditions(page: Page, watched: Server) -> None:
    page.keyboard.press("a")
    rings = page.get_by_role("row").filter(has=page.get_by_role("link", name="rings"))
    expect(rings).to_contain_text("In alarm")  # the page follows the state
    expect(rings).to_contain_text("Average of loss > 1.5, in a period of 1 min 00 s")
    quiet = page.get_by_role("row").filter(has=page.get_by_role("link", name="quiet"))
    expect(quiet).to_contain_text("Insufficient data")
    page.get_by_label("State").select_option("ALARM")
    expect(quiet).to_be_hidden()
    expect(page).to_have_url(console(watched, "/alarms?state=ALARM"))
    page.reload()
    expect(rings).to_be_visible()
    expect(quiet).to_be_hidden()


def test_an_alarm_shows_its_plot_threshold_and_history(page: Page, watched: Server) -> None:
    page.goto(console(watched, "/alarms?alarm=rings"))
    expect(page.get_by_text(world.HOSTILE)).to_be_visible()
    plot = page.get_by_role("region", name="Watched metric")
    expect(plot.locator("canvas")).to_be_visible()
    values = plot.get_by_role("list", name="Last values").get_by_role("listitem")
    expect(values).to_have_count(2)
    expect(values.nth(0)).to_contain_text(re.compile(r"loss\s*\d"))
    expect(values.nth(1)).to_contain_text(re.compile(r"Threshold\s*1.5"))
    history = page.get_by_role("region", name="History").first
    expect(history).to_contain_text('Alarm "rings" created')
    expect(history).to_contain_text("StateUpdate")
    page.get_by_role("button", name="1 day").click()
    expect(page).to_have_url(console(watched, "/alarms?alarm=rings&range=1d"))
    expect(values).to_have_count(2)
    assert page.evaluate("window.broken") is None


def test_a_dashboard_is_drawn_and_its_texts_are_text(page: Page, watched: Server) -> None:
    page.keyboard.press("o")
    page.get_by_role("link", name="team").click()
    expect(page).to_have_url(console(watched, "/dashboards?dashboard=team"))
    text = page.get_by_role("region", name="Text")
    expect(text.get_by_role("heading", name="Team")).to_be_visible()
    expect(text).to_contain_text(world.HOSTILE)
    loss = page.get_by_role("region", name="The loss")
    expect(loss.locator("canvas")).to_be_visible()
    expect(loss.get_by_role("list", name="Last values")).to_contain_text(world.HOSTILE)
    expect(loss.get_by_role("list", name="Last values")).to_contain_text("most")
    alarms = page.get_by_role("region", name="Alarms")
    expect(alarms.get_by_role("listitem")).to_contain_text("In alarm")
    expect(page.get_by_text("does not draw widgets of the type log")).to_be_visible()
    assert page.evaluate("window.broken") is None
    alarms.get_by_role("link", name="rings").click()
    expect(page.get_by_role("heading", name="rings")).to_be_visible()


def test_the_pages_are_accessible(browser: Browser, watched: Server) -> None:
    for theme in ("light", "dark"):
        page = signed_in(browser, watched, color_scheme=theme, viewport=world.PHONE)
        for path in ("/alarms", "/alarms?alarm=rings", "/dashboards?dashboard=team"):
            page.goto(console(watched, path))
            if path != "/alarms":
                expect(page.locator("canvas")).to_be_visible()
            state = page.get_by_text("In alarm", exact=True).locator("visible=true")
            expect(state.first).to_be_visible()
            assert not (found := world.violations(page)), (path, theme, found)
            assert page.evaluate("document.documentElement.scrollWidth") <= world.PHONE["width"]
        page.context.close()


def test_the_page_names_a_missing_alarm_or_dashboard(page: Page, watched: Server) -> None:
    page.goto(console(watched, "/alarms?alarm=nothing"))
    expect(page.get_by_text("Alarm not found.")).to_be_visible()
    page.goto(console(watched, "/dashboards?dashboard=nothing"))
    refused = page.get_by_role("region", name="The dashboard could not be read")
    expect(refused).to_contain_text("Dashboard nothing does not exist")


def test_alarms_are_shown_by_the_rights_of_the_principal(browser: Browser, watched: Server) -> None:
    keys = world.user(watched, "ringer", "cloudwatch:DescribeAlarms")
    page = open_context(browser).new_page()
    page.goto(console(watched, "/alarms?alarm=rings"))
    fill_keys(page, keys)
    expect(page.get_by_text("In alarm", exact=True)).to_be_visible()
    expect(page.get_by_text("not authorized to perform: cloudwatch:GetMetricData")).to_be_visible()
    links = page.get_by_role("navigation", name="Views").get_by_role("link")
    expect(links).to_have_text(["Alarms"])
    page.goto(console(watched, "/dashboards?dashboard=team"))
    refused = page.get_by_role("region", name="The dashboard could not be read")
    expect(refused).to_contain_text("cloudwatch:GetDashboard")
    page.context.close()
