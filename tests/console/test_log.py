"""Tests the view of a log: lines that the page does not have are read when the user scrolls to
them."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from tests import jobs
from tests.console import world
from tests.console.world import console, signed_in
from tests.trainyard_server import Server, wait_for

LINES = 4200  # more than four pages of GetLogEvents as the console reads them
COUNT = f"seq -f 'line %.0f.' {LINES}"
TOP, BOTTOM = "0", "view.scrollHeight"


def opened(browser: Browser, server: Server, name: str, script: str, hosts: int = 1) -> Page:
    """Runs a job to its end, and opens its log."""
    sagemaker = server.boto("sagemaker")
    if hosts > 1:  # they need the machine
        sagemaker.stop_training_job(TrainingJobName="waiting-1")
        sagemaker.stop_training_job(TrainingJobName="running-1")
    world.start_job(server, name, script, hosts=hosts)
    jobs.wait_until(sagemaker, name, ["Completed"])
    page = signed_in(browser, server)
    page.goto(console(server, f"/jobs/{name}/log"))
    return page


def scroll_until(page: Page, top: str, text: str) -> None:
    """Scrolls in a direction until the page shows a text, as a user does while the page reads
    more."""
    log = page.get_by_role("log")

    def there() -> bool:
        log.evaluate(f"view => {{ view.scrollTop = {top}; }}")
        return text in page.get_by_role("main").inner_text()

    wait_for(there, text, world.SECONDS_MAX)


def test_scrolling_up_reaches_the_first_line(browser: Browser, server: Server) -> None:
    page = opened(browser, server, "long-1", COUNT)
    log = page.get_by_role("log")
    expect(log).to_contain_text(f"line {LINES}.")
    expect(page.get_by_text("500 lines")).to_be_visible()
    reads: list[str] = []
    page.on("request", lambda request: reads.append(request.url))
    log.evaluate("view => { view.scrollTop = 200; }")
    expect(page.get_by_text("1,500 lines")).to_be_visible()
    # The visible lines keep their position: the tenth line, of twenty pixels each.
    wait_for(lambda: 20_000 <= log.evaluate("view => view.scrollTop") <= 20_400, "the same lines")
    expect(log).to_contain_text(f"line {LINES - 500 + 11}.")
    assert len([url for url in reads if "GetLogEvents" in url]) == 1, "no more than is looked at"
    scroll_until(page, TOP, f"{LINES:,} lines · from the beginning")
    scroll_until(page, TOP, "line 1.")
    page.get_by_label("Search the log").fill("line 7.")
    expect(page.get_by_text("of 1")).to_be_visible()
    page.context.close()


def test_keys_jump_to_the_beginning_and_the_end(browser: Browser, server: Server) -> None:
    page = opened(browser, server, "long-2", COUNT)
    log = page.get_by_role("log")
    expect(log).to_contain_text(f"line {LINES}.")
    page.keyboard.press("b")
    expect(log).to_contain_text("line 1.")
    expect(page.get_by_text("1,000 lines · from the beginning · later ones follow")).to_be_visible()
    scroll_until(page, BOTTOM, f"line {LINES}.")
    expect(page.get_by_text(f"{LINES:,} lines · from the beginning")).to_be_visible()
    page.get_by_role("button", name="Beginning").click()
    expect(log).to_contain_text("line 1.")
    page.keyboard.press("f")
    expect(log).to_contain_text(f"line {LINES}.")
    expect(page.get_by_text("500 lines · scroll up for earlier ones")).to_be_visible()
    page.context.close()


def test_new_lines_do_not_move_the_visible_lines(browser: Browser, server: Server) -> None:
    world.start_job(server, "long-3", f"{COUNT}; {world.TRAIN}")
    page = signed_in(browser, server)
    page.goto(console(server, "/jobs/long-3/log"))
    log = page.get_by_role("log")
    expect(log).to_contain_text("step 2 ")
    page.keyboard.press("b")
    expect(log).to_contain_text("line 1.")
    assert "step" not in log.inner_text()
    page.keyboard.press("f")
    expect(log).to_contain_text("step 4 ")
    server.boto("sagemaker").stop_training_job(TrainingJobName="long-3")
    jobs.wait_until(server.boto("sagemaker"), "long-3", ["Stopped"])
    page.context.close()


def test_hosts_are_merged_from_their_beginnings(browser: Browser, server: Server) -> None:
    script = 'seq -f "line %.0f. of $(hostname)" 1500'
    page = opened(browser, server, "long-4", script, hosts=2)
    log = page.get_by_role("log")
    expect(page.get_by_text("1,000 lines of 2 hosts")).to_be_visible()
    page.keyboard.press("b")
    expect(page.get_by_text("2,000 lines of 2 hosts · from the beginning")).to_be_visible()
    scroll_until(page, BOTTOM, "3,000 lines of 2 hosts · from the beginning")
    for host in ("algo-1", "algo-2"):
        page.get_by_label("Host", exact=True).select_option(host)
        expect(page.get_by_text(f"1,500 lines of {host} · from the beginning")).to_be_visible()
        for top, line in ((TOP, 1), (BOTTOM, 1500)):
            log.evaluate(f"view => {{ view.scrollTop = {top}; }}")
            expect(log).to_contain_text(f"line {line}. of {host}")
    page.context.close()
