"""Tests the view of buckets and objects: lists, previews, downloads, and hostile names and
contents."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.console import world
from tests.console.world import console, fill_keys, open_context, signed_in
from tests.trainyard_server import Server

# One red pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJg"
    "gg=="
)
NAME = "weird <b>&'\" name+%2F.txt"
OBJECTS = {
    "data/train/part-0.csv": b'label,text\n1,"a, b"\n2,<i>c</i>\n',
    "data/picture.png": PNG,
    "data/page.html": world.HOSTILE.encode(),
    "data/drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.broken=1'/>",
    "data/model.bin": b"\x00\x01\x02",
    "data/long.txt": b"a line of text\n" * 40_000,
    f"data/{NAME}": b"the text of a weird name",
}


@pytest.fixture(scope="module")
def stored(server: Server) -> Server:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="previewed")
    for key, body in OBJECTS.items():
        s3.put_object(Bucket="previewed", Key=key, Body=body, ContentType="text/html")
    for index in range(210):
        s3.put_object(Bucket="previewed", Key=f"many/{index:03}", Body=b"")
    return server


@pytest.fixture
def page(browser: Browser, stored: Server) -> Iterator[Page]:
    one = signed_in(browser, stored)
    yield one
    assert one.evaluate("window.broken") is None
    one.context.close()


def test_buckets_folders_and_objects_are_listed(page: Page, stored: Server) -> None:
    page.get_by_role("link", name="Data").click()
    page.get_by_role("list", name="Buckets").get_by_role("link", name="previewed").click()
    objects = page.get_by_role("list", name="Objects of previewed").get_by_role("listitem")
    expect(objects).to_have_text(["data/", "many/"])
    page.get_by_role("link", name="many/").click()
    expect(objects).to_have_count(200)
    page.get_by_role("button", name="Show more").click()
    expect(objects).to_have_count(210)
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="previewed").click()
    expect(objects).to_have_count(2)


def test_objects_are_shown_as_tables_pictures_and_text(page: Page, stored: Server) -> None:
    page.goto(console(stored, "/data?bucket=previewed&prefix=data/"))
    page.get_by_role("link", name="train/").click()
    page.get_by_role("link", name="part-0.csv").click()
    cells = page.get_by_role("region", name="Rows").get_by_role("cell")
    expect(cells).to_have_text(["label", "text", "1", "a, b", "2", "<i>c</i>"])
    page.goto(console(stored, "/data?bucket=previewed&prefix=data/&key=data/picture.png"))
    picture = page.get_by_role("img", name="Contents of picture.png")
    expect(picture).to_have_js_property("naturalWidth", 1)
    page.get_by_role("link", name="long.txt").click()
    text = page.get_by_role("region", name="Text")
    expect(text).to_contain_text("a line of text")
    expect(page.get_by_text("This is the beginning")).to_be_visible()
    page.get_by_role("link", name="model.bin").click()
    expect(page.get_by_text("The object is not text.")).to_be_visible()


def test_images_are_read_again_and_broken_ones_are_named(page: Page, stored: Server) -> None:
    answers: Iterator[int] = iter([503])

    def busy(route: Route) -> None:
        status = next(answers, None)
        route.fulfill(status=status) if status else route.continue_()

    page.route("**/objects?what=image*", busy)
    shown = console(stored, "/data?bucket=previewed&prefix=data/&key=data/picture.png")
    page.goto(shown)
    picture = page.get_by_role("img", name="Contents of picture.png")
    expect(picture).to_have_js_property("naturalWidth", 1)
    assert next(answers, None) is None
    answers = itertools.repeat(503)
    page.goto(shown)
    problem = page.get_by_role("region", name="The object could not be read")
    expect(problem).to_contain_text("The server did not send an image")
    expect(picture).to_be_hidden()


def test_scripts_in_objects_do_not_run(page: Page, stored: Server) -> None:
    page.goto(console(stored, "/data?bucket=previewed&prefix=data/"))
    text = page.get_by_role("region", name="Text")
    for name, contents in (("page.html", world.HOSTILE), ("drawing.svg", "<svg xmlns")):
        page.get_by_role("link", name=name).click()
        expect(text).to_contain_text(contents)
    page.get_by_role("link", name=NAME).click()
    expect(text).to_contain_text("the text of a weird name")
    alone = page.context.new_page()
    for what in ("text", "image", "download"):
        for key in ("data/page.html", "data/drawing.svg"):
            query = f"what={what}&bucket=previewed&key={key}&region=us-east-1"
            answer = page.request.get(console(stored, f"/objects?{query}"))
            assert "html" not in answer.headers["content-type"]
            assert "svg" not in answer.headers["content-type"]
            assert "sandbox" in answer.headers["content-security-policy"] or answer.status == 400
    alone.goto(console(stored, "/objects?what=text&bucket=previewed&key=data/page.html"))
    assert alone.evaluate("window.broken") is None
    expect(alone.locator("pre")).to_contain_text("<script>")


def test_an_object_is_downloaded(page: Page, stored: Server) -> None:
    page.goto(console(stored, "/data?bucket=previewed&prefix=data/&key=data/model.bin"))
    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()
    assert started.value.suggested_filename == "model.bin"
    with open(started.value.path(), "rb") as file:
        assert file.read() == OBJECTS["data/model.bin"]


def test_the_permissions_of_s3_apply(browser: Browser, stored: Server) -> None:
    keys = world.user(stored, "lister", "s3:ListAllMyBuckets", "s3:ListBucket")
    page = open_context(browser).new_page()
    page.goto(console(stored, "/data?bucket=previewed&prefix=data/"))
    fill_keys(page, keys)
    page.get_by_role("link", name="page.html").click()
    refused = page.get_by_role("region", name="The object could not be read")
    expect(refused).to_contain_text("s3:GetObject")
    page.context.close()
    nothing = world.user(stored, "no-lister", "trainyard:ListJobs")
    page = open_context(browser).new_page()
    page.goto(console(stored, "/data"))
    fill_keys(page, nothing)
    refused = page.get_by_role("region", name="The data could not be read")
    expect(refused).to_contain_text("s3:ListAllMyBuckets")
    expect(page.get_by_role("link", name="Data")).to_be_hidden()
    page.context.close()
