"""Tests the egress of jobs: NAT, and the name servers, proxies, CA and package index of the
config."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import jobs
from tests.trainyard_server import Server

OUTSIDE = "trainyard-test-outside"
HERE, THERE = "10.231.7.1", "10.231.7.2"
CONFIG = """
[network]
name_servers = ["10.231.7.2"]
http_proxy = "http://10.231.7.2:3128"
no_proxy = "10.231.7.2,169.254.170.2"
ca_bundle = "/etc/ssl/certs/ca-certificates.crt"
package_index = "http://10.231.7.2:8000/simple"
"""


@pytest.fixture
def outside() -> Iterator[None]:
    """Makes a network namespace that simulates the network outside this machine. It has an HTTP
    server that returns the client's address."""
    serve = (
        "import http.server\nclass Who(http.server.BaseHTTPRequestHandler):\n    def"
        " do_GET(self):\n        body = ('you are ' + self.client_address[0]).encode()\n       "
        " self.send_response(200); self.send_header('Content-Length', str(len(body)));"
        f" self.end_headers(); self.wfile.write(body)\nhttp.server.HTTPServer(('{THERE}', 8000),"
        " Who).serve_forever()\n"
    )

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True)

    ip("netns", "add", OUTSIDE)
    server = None
    try:
        ip("link", "add", "outside0", "type", "veth", "peer", "name", "eth0", "netns", OUTSIDE)
        ip("addr", "add", f"{HERE}/30", "dev", "outside0")
        ip("link", "set", "outside0", "up")
        ip("-n", OUTSIDE, "addr", "add", f"{THERE}/30", "dev", "eth0")
        ip("-n", OUTSIDE, "link", "set", "eth0", "up")
        server = subprocess.Popen(
            ["ip", "netns", "exec", OUTSIDE, "/usr/bin/python3", "-c", serve],
            stderr=subprocess.DEVNULL,
        )
        yield
    finally:
        if server:
            server.kill()
            server.wait()
        ip("netns", "del", OUTSIDE)


def run(server: Server, name: str, script: str, **more: Any) -> list[str]:
    server.boto("sagemaker").create_training_job(**jobs.request(name, script, **more))
    done = jobs.wait_until(server.boto("sagemaker"), name)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    return jobs.log_lines(server.boto("logs"), name)


def test_egress_follows_the_config(start: Callable[..., Server], outside: None) -> None:
    server = start(CONFIG)
    server.boto("s3").create_bucket(Bucket="yard")
    get = (
        f"curl -s --retry 20 --retry-connrefused --retry-delay 1 -m 5 http://{THERE}:8000/ || echo"
        " unreached"
    )
    output = run(
        server,
        "outward",
        f"{get}; echo; grep nameserver /etc/resolv.conf; echo $http_proxy; echo $PIP_INDEX_URL; wc"
        " -c < $SSL_CERT_FILE",
    )
    assert output[0] == f"you are {HERE}", "NAT replaces the job's address by the machine's"
    assert output[1:4] == [
        f"nameserver {THERE}",
        f"http://{THERE}:3128",
        f"http://{THERE}:8000/simple",
    ], output
    assert int(output[4]) > 1000
    alone = run(
        server,
        "isolated",
        f"curl -s -m 3 http://{THERE}:8000/ || echo unreached",
        EnableNetworkIsolation=True,
    )
    assert alone == ["unreached"]
