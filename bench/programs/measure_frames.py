"""Measures how smoothly Chromium shows the console, and how soon it shows the first page.

  python -m bench.programs.measure_frames CONSOLE LINK JOBS SECONDS ROUNDS NAME,NAME..

LINK signs in, once. Prints JSON: the intervals between frames, the long tasks and the processor
time of the main thread, of each round of each situation (`SITUATIONS`), and the times of the first
paints. build/browser has the Python that runs this; the browser is Debian's Chromium.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    CDPSession,
    Page,
    StorageState,
    sync_playwright,
)

from tests.console import world

SETTLE_MILLISECONDS = 3000  # after a page was opened: what it reads first
WAIT_MILLISECONDS_MAX = 300_000  # for 1,000 rows or the curves of a comparison, on a busy machine
STEP_PIXELS = 24  # of each frame: 1,440 pixels a second, a fast scroll
PAINT_ROUNDS = 5
NAME = "a.name"  # the link of each row of the list

# Records each frame for a time, and moves the page in each of them. The time of a frame is the one
# that the browser hands to requestAnimationFrame: frames that were left out are long intervals.
RECORD = """([milliseconds, step]) => new Promise((done) => {
  const frames = [], tasks = [];
  const observer = new PerformanceObserver((list) => {
    for (const task of list.getEntries()) tasks.push(task.duration);
  });
  observer.observe({entryTypes: ['longtask']});
  let direction = 1, moved = 0;
  const frame = (now) => {
    frames.push(now);
    if (now - frames[0] >= milliseconds) {
      observer.disconnect();
      done({frames, tasks, moved});
      return;
    }
    const before = window.scrollY;
    window.scrollBy(0, direction * step);
    if (window.scrollY === before) direction = -direction;
    moved += Math.abs(window.scrollY - before);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""
# The time of the first frame that has a row of the list.
FIRST_ROW = """window.firstRow = new Promise((done) => {
  const observer = new MutationObserver(() => {
    if (!document.querySelector('a.name')) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now())));
  });
  observer.observe(document, {childList: true, subtree: true});
})"""
FIRST_PAINT = """() => new Promise((done) => {
  new PerformanceObserver((list) => {
    const [first] = list.getEntriesByName('first-contentful-paint');
    if (first) done(first.startTime);
  }).observe({type: 'paint', buffered: true});
})"""


def main_thread_seconds(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


class Situation:
    """A page that is measured: how it is opened, and which answers show that it is live."""

    def __init__(self, page: Page, answers: str, step: int = STEP_PIXELS) -> None:
        self.page, self.step, self.answers = page, step, 0
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.on("response", lambda response: self.count(answers in response.url if answers else 0))

    def count(self, number: int) -> None:
        self.answers += number

    def measure(self, seconds: float) -> dict[str, Any]:
        self.page.bring_to_front()
        began, answers = main_thread_seconds(self.session), self.answers
        found = self.page.evaluate(RECORD, [seconds * 1000, self.step])
        frames = found["frames"]
        return {
            "intervals": [after - before for before, after in itertools.pairwise(frames)],
            "long_tasks": found["tasks"],
            "moved": found["moved"],
            "busy": (main_thread_seconds(self.session) - began) / (frames[-1] - frames[0]) * 1000,
            "answers": self.answers - answers,
        }


def empty(context: BrowserContext, console: str, names: str, jobs: int) -> Situation:
    """An empty page: the most that this browser and this machine can show."""
    page = context.new_page()
    page.set_content("<div style='height: 20000px'>empty</div>")
    return Situation(page, "")


def jobs_list(context: BrowserContext, console: str, names: str, jobs: int) -> Situation:
    """The list of all jobs, while they run and others begin and end."""
    page = context.new_page()
    page.goto(f"{console}/jobs?status=InProgress")
    page.locator(NAME).first.wait_for()
    older = page.get_by_role("button", name="Show older jobs")
    while older.count():
        older.click()
        page.wait_for_timeout(200)
    return Situation(page, "ListJobs")


def comparison(context: BrowserContext, console: str, names: str, jobs: int) -> Situation:
    """The curves of as many jobs as one may compare, in as many plots as one page has."""
    page = context.new_page()
    page.goto(f"{console}/compare?jobs={names}")
    page.locator("canvas").nth(23).wait_for(state="attached", timeout=WAIT_MILLISECONDS_MAX)
    return Situation(page, "GetMetric")


SITUATIONS: dict[str, Callable[[BrowserContext, str, str, int], Situation]] = {
    "empty": empty,
    "jobs": jobs_list,
    "compare": comparison,
}


def first_paints(browser: Browser, console: str, state: StorageState) -> dict[str, list[float]]:
    """Opens pages without a cache, each in a context of its own."""
    times: dict[str, list[float]] = {"sign-in": [], "jobs": [], "first row": []}
    for _ in range(PAINT_ROUNDS):
        page = world.open_context(browser).new_page()
        page.goto(console)
        times["sign-in"].append(page.evaluate(FIRST_PAINT))
        page.context.close()
        page = world.open_context(browser, storage_state=state).new_page()
        page.add_init_script(FIRST_ROW)
        page.goto(f"{console}/jobs")
        times["first row"].append(page.evaluate("window.firstRow"))
        times["jobs"].append(page.evaluate(FIRST_PAINT))
        page.context.close()
    return times


def main(console: str, link: str, jobs: int, seconds: float, rounds: int, names: str) -> None:
    with sync_playwright() as playwright:
        browser = world.launch(playwright)
        context = world.open_context(browser)
        context.set_default_timeout(WAIT_MILLISECONDS_MAX)
        page = context.new_page()
        page.goto(link)
        page.get_by_role("heading", name="Jobs").wait_for()
        page.close()
        paints = first_paints(browser, console, context.storage_state())
        print("paints", paints, file=sys.stderr, flush=True)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in SITUATIONS}
        opened = {}
        for _ in range(rounds):
            for name, opens in SITUATIONS.items():
                # A page that is not in front has no frames, and reads less.
                opened[name] = opens(context, console, names, jobs)
                opened[name].page.wait_for_timeout(SETTLE_MILLISECONDS)
                found[name].append(opened[name].measure(seconds))
                opened.pop(name).page.close()
        browser.close()
    print(json.dumps({"paints": paints, "frames": found}))


if __name__ == "__main__":
    console, link, jobs, seconds, rounds, names = sys.argv[1:]
    main(console, link, int(jobs), float(seconds), int(rounds), names)
