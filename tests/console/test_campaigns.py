"""Tests the view of campaigns: the map of regions with the bytes moved, rows, and permissions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console import world
from tests.console.world import console, fill_keys, open_context, signed_in
from tests.trainyard_server import Server

BODY = b"x" * 3072


@pytest.fixture(scope="module")
def toured(start: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Runs the campaign `brought`: two rows with data in another region; one of them fails."""
    server = start(world.CONFIG + world.PRICES)
    there = server.boto("s3", region_name="eu-west-1")
    there.create_bucket(
        Bucket="drives-eu", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    there.put_object(Bucket="drives-eu", Key="good/part", Body=BODY)
    there.put_object(Bucket="drives-eu", Key="bad/part", Body=BODY)
    rows = " UNION ALL ".join(
        f"SELECT '{name}' AS name, 'eu-west-1' AS region, 's3://drives-eu/{name}/' AS data,"
        f" {len(BODY)} AS bytes, 1 AS hours"
        for name in ("good", "bad")
    )
    folder = tmp_path_factory.mktemp("campaigns")
    world.run_campaign(
        server,
        folder,
        "brought",
        rows,
        "[ '{name}' = good ]",
    )
    return server


@pytest.fixture
def page(browser: Browser, toured: Server) -> Iterator[Page]:
    one = signed_in(browser, toured)
    yield one
    one.context.close()


def test_the_map_shows_regions_and_bytes_moved(page: Page, toured: Server) -> None:
    page.keyboard.press("p")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="brought"))
    expect(row).to_contain_text("1 of 2")
    expect(row).to_contain_text("6.0 KiB")
    picture = page.get_by_role("img", name=re.compile("eu-west-1 to us-east-1, 6.0 KiB"))
    expect(picture).to_be_visible()
    moved = page.get_by_role("region", name="Bytes moved").first.locator("tbody tr")
    expect(moved).to_have_text(re.compile(r"eu-west-1\s*us-east-1\s*6.0 KiB\s*2"))
    regions = page.get_by_role("region", name="Regions").first.locator("tbody tr")
    expect(regions).to_have_count(1)
    expect(regions).to_contain_text("us-east-1")


def test_a_campaign_has_a_link_with_its_rows(page: Page, toured: Server) -> None:
    page.goto(console(toured, "/campaigns"))
    page.get_by_role("link", name="brought").click()
    expect(page).to_have_url(console(toured, "/campaigns?campaign=brought"))
    rows = page.get_by_role("region", name="Rows").first.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("data from eu-west-1")
    page.get_by_label("State of the rows").select_option("failed")
    expect(rows).to_have_count(1)
    expect(page).to_have_url(console(toured, "/campaigns?campaign=brought&state=failed"))
    page.reload()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Failed")
    rows.get_by_role("link", name="brought-2").click()
    expect(page.get_by_role("heading", name="brought-2")).to_be_visible()


def test_the_pages_of_campaigns_are_accessible(browser: Browser, toured: Server) -> None:
    for theme in ("light", "dark"):
        page = signed_in(browser, toured, color_scheme=theme, viewport=world.PHONE)
        for path in ("/campaigns", "/campaigns?campaign=brought"):
            page.goto(console(toured, path))
            expect(page.get_by_role("img")).to_be_visible()
            assert not (found := world.violations(page)), (path, theme, found)
            assert page.evaluate("document.documentElement.scrollWidth") <= world.PHONE["width"]
        page.context.close()


def test_a_missing_campaign_is_reported(page: Page, toured: Server) -> None:
    page.goto(console(toured, "/campaigns?campaign=nothing"))
    expect(page.get_by_role("region", name="The campaign could not be read")).to_be_visible()


def test_a_campaign_is_hidden_without_permission(browser: Browser, toured: Server) -> None:
    keys = world.user(toured, "planner", "trainyard:ListCampaigns")
    page = open_context(browser).new_page()
    page.goto(console(toured, "/campaigns"))
    fill_keys(page, keys)
    expect(page.get_by_role("link", name="brought")).to_be_visible()
    expect(page.get_by_role("region", name="Bytes moved")).to_have_count(0)
    page.goto(console(toured, "/campaigns?campaign=brought"))
    refused = page.get_by_role("region", name="The campaign could not be read")
    expect(refused).to_contain_text("trainyard:DescribeCampaign")
    page.context.close()
