"""Runs moto's own tests of some services against a server; ends with `N passed, M failed`.

usage: python -m tests.independent.run [s3|logs|cloudwatch ..] [--update]

moto imitates AWS in Python, and its tests say what AWS answers. They know nothing of this server.
A test counts if it sent the server a request (moto_plugin.py). passing_SERVICE.txt lists the tests
that pass; one of them that fails is a failure. The others need what this server does not offer
(versions, access lists, archives, other services), or moto's own texts. `--update` writes the
lists; names of services run these alone.
"""

from __future__ import annotations

import dataclasses
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree as ElementTree

from tests.trainyard_server import ROOT, Server

HERE = os.path.join(ROOT, "tests", "independent")
VENV = os.path.join(ROOT, "build", "moto")
SECONDS_MAX = 900
REGIONS = (
    "ap-northeast-1",
    "ap-southeast-2",
    "eu-central-1",
    "eu-west-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
)


# The resources of AWS that moto's tests name without making them: a webhook stands for streams, and
# log groups have the logs of distributions.
LOG_CONFIG = """
account_id = "123456789012"
[log_webhooks.streams]
url = "http://127.0.0.1:9/"
stands_for = [
    "arn:aws:kinesis:us-east-1:123456789012:stream/my-kinesis-stream",
    "arn:aws:kinesis:us-east-1:123456789012:stream/my-kinesis-stream-updated",
    "arn:aws:firehose:us-east-1:123456789012:deliverystream/test-delivery-stream",
]
[log_sources.first]
arn = "arn:aws:cloudfront::123456789012:distribution/E1Q5F5862X9VJ5"
log_type = "ACCESS_LOGS"
log_group = "/outside/cdn"
[log_sources.second]
arn = "arn:aws:cloudfront::123456789012:distribution/E19DL18TOXN9JU"
log_type = "ACCESS_LOGS"
log_group = "/outside/cdn"
"""


@dataclasses.dataclass(frozen=True)
class Subject:
    passing_min: int  # of the tests that send a request
    config: str = ""
    regions: tuple[str, ...] = REGIONS
    # Directories of the server's data that are removed before each test, since no request does it.
    forgotten: tuple[str, ...] = ()


SUBJECTS = {
    "s3": Subject(200),
    "logs": Subject(
        79,
        config=LOG_CONFIG,
        forgotten=("logs",),
    ),
    "cloudwatch": Subject(
        50,
        config='account_id = "123456789012"\n',
        regions=(*REGIONS, "cn-north-1", "eu-west-3"),
        forgotten=("metrics", "alarms"),
    ),
}


class Resetter:
    """Restarts the server without its forgotten directories, whenever its address is read."""

    def __init__(self, server: Server, directories: tuple[str, ...]) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.stop()
                for name in directories:
                    shutil.rmtree(os.path.join(server.data, name), ignore_errors=True)
                server.start()
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def address(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/"


def run_tests(server: Server, service: str, directory: str) -> ElementTree.Element:
    """Runs pytest; returns its report."""
    config = os.path.join(directory, "aws-config")
    with open(config, "w", encoding="utf-8") as file:
        # boto3 presigns with the former signature, which S3 refuses for buckets made since 2020.
        file.write("[default]\ns3 =\n    signature_version = s3v4\n")
    keys = {name: value for name, value in server.env.items() if name.startswith("AWS_")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment = kept | {
        "AWS_ACCESS_KEY_ID": keys["AWS_ACCESS_KEY_ID"],
        "AWS_SECRET_ACCESS_KEY": keys["AWS_SECRET_ACCESS_KEY"],
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": keys["AWS_ENDPOINT_URL"],  # for clients that moto does not change
        "AWS_CONFIG_FILE": config,
        "AWS_MAX_ATTEMPTS": "1",
        "PYTHONPATH": HERE,
        "TEST_SERVER_MODE": "true",
        "TEST_SERVER_MODE_ENDPOINT": keys["AWS_ENDPOINT_URL"],
    }
    if forgotten := SUBJECTS[service].forgotten:
        environment["SERVER_RESET"] = Resetter(server, forgotten).address()
    report = os.path.join(directory, "report.xml")
    subprocess.run(
        [
            os.path.join(VENV, "bin", "python"),
            *("-m", "pytest", "-q", "-p", "moto_plugin", "-p", "no:cacheprovider"),
            *("--tb=line", f"--junit-xml={report}", f"tests/test_{service}"),
        ],
        cwd=os.path.join(VENV, "source"),
        env=environment,
        timeout=SECONDS_MAX,
    )
    return ElementTree.parse(report).getroot()


def passed_in(report: ElementTree.Element) -> set[str]:
    found = set()
    for case in report.iter("testcase"):
        if not any(case.find(end) is not None for end in ("failure", "error", "skipped")):
            name = f"{case.get('classname', '')}.{case.get('name')}"
            found.add(re.sub(r"^tests\.test_[a-z0-9]+\.", "", name))
    return found


def run_service(service: str, update: bool) -> tuple[int, int]:
    """Runs a service's tests; returns the numbers of passed and failed tests."""
    subject = SUBJECTS[service]
    listed = os.path.join(HERE, f"passing_{service}.txt")
    with tempfile.TemporaryDirectory() as directory:
        regions = "".join(f"[regions.'{one}']\n" for one in subject.regions)
        server = Server(os.path.join(directory, "data"), subject.config + regions)
        server.start()
        try:
            report = run_tests(server, service, directory)
        finally:
            server.clean()
    passed = passed_in(report)
    if update:
        with open(listed, "w", encoding="ascii", errors="backslashreplace") as file:
            file.writelines(f"{name}\n" for name in sorted(passed))
    with open(listed, encoding="ascii") as file:
        expected = set(file.read().splitlines())
    lost = sorted(expected - {name.encode("ascii", "backslashreplace").decode() for name in passed})
    for name in lost:
        print(f"FAILED {service} {name}, which passed before")
    too_few = len(passed) < subject.passing_min
    if too_few:
        print(f"FAILED: {len(passed)} tests of {service} pass, fewer than {subject.passing_min}")
    print(f"{service}: {len(passed)} passed, {len(lost) + too_few} failed")
    return len(passed), len(lost) + too_few


def main(arguments: list[str]) -> int:
    services = [one for one in arguments if not one.startswith("--")] or list(SUBJECTS)
    counts = [run_service(one, "--update" in arguments) for one in services]
    failed = sum(count[1] for count in counts)
    print(f"{sum(count[0] for count in counts)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
