"""Takes screenshots of the console's pages, on a separate server with jobs of each kind.

  ./yard screenshots [FOLDER]    each page in light, dark and phone width, into build/screenshots;
                                 those that documents show, into docs/images/console

Documents show few, so that a clone stays small."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import sys
import tempfile
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

from tests import jobs
from tests.console import world
from tests.trainyard_server import ROOT, Server

SHOWN = ["jobs-light", "job-light", "log-dark", "compare-light", "machines-light"]  # in documents
DOCUMENTS = os.path.join(ROOT, "docs", "images", "console")
WAYS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"color_scheme": "light", "viewport": world.PHONE, "device_scale_factor": 2},
}
PAGES = {
    "jobs": "/jobs",
    "chosen": "/jobs?jobs=sweep-lr-001,sweep-lr-01",
    "compare": "/compare?jobs=sweep-lr-001,sweep-lr-003,sweep-lr-01&x=epoch&smooth=0.6",
    "queues": "/queues",
    "machines": "/machines",
    "data": "/data?bucket=yard",
    "job": "/jobs/resnet-cifar10-7?smooth=0.5",
    "log": "/jobs/digits-sweep-14/log?error=1",
    "failed": "/jobs/digits-sweep-14",
    "waiting": "/jobs/bert-base-2",
    "configuration": "/jobs/resnet-cifar10-7/configuration",
    "new": "/new?from=resnet-cifar10-7",
    "campaign": "/campaigns?campaign=streets",
    "alarms": "/alarms",
    "alarm": "/alarms?alarm=loss-is-high",
    "dashboard": "/dashboards?dashboard=team",
    "users": "/users",
    "user": "/users?user=mia",
}
REGIONS = "[regions.'us-west-2']\n"
PLOTS = {"job": 2, "compare": 3, "alarm": 1, "dashboard": 1}  # drawn on a page
POINTS = re.compile(r"([4-9]\d|\d{3,}) points")  # of the metrics that a picture waits for
# Loss and accuracy as a training prints them: falling and rising, with noise.
TRAIN = (
    "awk 'BEGIN{srand(7); for(i=1;;i++){l=2.3*exp(-i/25)+0.12+rand()*0.08;"
    ' printf "epoch %d/90 loss=%.4f accuracy=%.4f images/s=%d\\n",'
    ' i,l,1-l/2.6,1800+rand()*60; fflush(); system("sleep 0.5")}}\''
)
# A run of a sweep: {} is its learning rate.
SWEEP = (
    "awk 'BEGIN{srand(3); for(i=1;i<=24;i++){l=2.3*exp(-i*(0.1+{}*20)/6)+0.1+rand()*0.05;"
    ' printf "epoch=%d loss=%.4f accuracy=%.4f\\n",'
    ' int((i+3)/4),l,1-l/2.6; fflush(); system("sleep 0.5")}}\''
)
SWEEPS = {"sweep-lr-001": "0.001", "sweep-lr-003": "0.003", "sweep-lr-01": "0.01"}
FAIL = (
    'for i in 1 2 3 4 5 6 7 8; do echo epoch $i/20 loss=$(awk "BEGIN{print 2/$i}"); sleep 0.3;'
    " done; [ $(hostname) = algo-1 ] && sleep 2;"
    " printf 'Traceback (most recent call last):\\n"
    '  File "/opt/ml/code/train.py", line 112, in <module>\\n    main()\\n'
    '  File "/opt/ml/code/train.py", line 88, in step\\n    loss.backward()\\n'
    "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB\\n'; exit 1"
)
METRICS = [
    {"Name": "train:loss", "Regex": r"loss=(\S+)"},
    {"Name": "validation:accuracy", "Regex": r"accuracy=(\S+)"},
    {"Name": "train:epoch", "Regex": r"epoch=(\S+)"},
]


def start_measured(server: Server, name: str, script: str, **more: Any) -> None:
    request = jobs.request(name, script, **more)
    request["AlgorithmSpecification"]["MetricDefinitions"] = METRICS
    server.boto("sagemaker").create_training_job(**request)


def start_jobs(server: Server) -> None:
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    for name, rate in SWEEPS.items():
        start_measured(
            server,
            name,
            SWEEP.replace("{}", rate),
            HyperParameters={"learning-rate": rate, "batch-size": "256", "optimizer": "sgd"},
        )
    for name in SWEEPS:
        jobs.wait_until(sagemaker, name, ["Completed"])
    world.start_job(server, "digits-sweep-14", FAIL, hosts=2)
    jobs.wait_until(sagemaker, "digits-sweep-14", ["Failed"])
    start_measured(
        server,
        "resnet-cifar10-7",
        TRAIN,
        hosts=2,
        HyperParameters={"epochs": "90", "learning-rate": "0.1", "batch-size": "256"},
    )
    jobs.wait_until(sagemaker, "resnet-cifar10-7", ["Training"])
    world.start_job(server, "bert-base-2", "true", hosts=2)
    world.start_queue(server)


def start_others(server: Server, folder: str) -> None:
    """Makes a campaign that has copied data, an alarm, a dashboard and users."""
    there = server.boto("s3", region_name="eu-west-1")
    there.create_bucket(
        Bucket="drives", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    rows = []
    for name, region in (("dublin", "eu-west-1"), ("oregon", "us-west-2"), ("boston", "us-east-1")):
        there.put_object(Bucket="drives", Key=f"{name}/part", Body=b"x" * (3 << 20))
        rows.append(
            f"SELECT '{name}' AS name, '{region}' AS region, 's3://drives/{name}/' AS data,"
            f" {3 << 20} AS bytes, 1 AS hours"
        )
    world.run_campaign(server, pathlib.Path(folder), "streets", " UNION ALL ".join(rows), "true")
    arn = world.start_alarm(server, "loss-is-high")
    world.start_dashboard(server, "team", arn, "# Vision\nThe loss of all jobs, by minute.", "loss")
    world.user(server, "mia", "s3:GetObject", "trainyard:ListJobs")
    world.user(server, "leo", "trainyard:*")


def take(page: Page, server: Server, name: str, path: str, file: str) -> None:
    page.goto(world.console(server, path))
    expect(page.get_by_role("heading").first).to_be_visible()
    expect(page.locator(".live.connected")).to_be_attached()
    if name in PLOTS:
        expect(page.locator("canvas")).to_have_count(PLOTS[name])
    if name in ("campaign", "user", "dashboard"):
        expect(page.get_by_role("region").first).to_be_visible()
    if name == "machines":
        expect(page.get_by_role("article").first).to_be_visible()
    if name == "queues":
        expect(page.get_by_role("region", name="nightly")).to_be_visible()
    if name == "new":
        preview = page.get_by_role("region", name="Before it starts")
        expect(preview).to_have_attribute("aria-busy", "false")
        expect(preview).to_contain_text(re.compile("Starts|Would wait"))
    if name == "log":
        expect(page.locator(".line.current")).to_be_visible()
    page.screenshot(path=file, full_page=name in ("compare", "new"))


def main(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    os.makedirs(DOCUMENTS, exist_ok=True)
    data = tempfile.mkdtemp(prefix="trainyard-screenshots-")
    server = Server(os.path.join(data, "data"), world.CONFIG + REGIONS + world.PRICES)
    server.start()
    try:
        start_others(server, data)
        start_jobs(server)
        with sync_playwright() as playwright:
            browser = world.launch(playwright)
            page = world.signed_in(browser, server)
            page.goto(world.console(server, PAGES["job"]))
            expect(page.get_by_text(POINTS).first).to_be_visible()
            for way, options in WAYS.items():
                page = world.signed_in(browser, server, reduced_motion="reduce", **options)
                for name, path in PAGES.items():
                    take(page, server, name, path, os.path.join(folder, f"{name}-{way}.png"))
                anonymous = world.open_context(browser, **options).new_page()
                anonymous.goto(world.console(server))
                expect(anonymous.get_by_role("heading", name="Sign in")).to_be_visible()
                anonymous.screenshot(path=os.path.join(folder, f"sign-in-{way}.png"))
            browser.close()
    finally:
        server.clean()
        shutil.rmtree(data, ignore_errors=True)
    for name in SHOWN:
        shutil.copy(os.path.join(folder, name + ".png"), DOCUMENTS)
    print(f"{len(os.listdir(folder))} pictures in {folder}")


if __name__ == "__main__":
    expect.set_options(timeout=world.SECONDS_MAX * 1000)
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "screenshots"))
