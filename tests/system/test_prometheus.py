"""Tests the server as a target of Debian's Prometheus: formats, tokens, permissions, rules and
dashboards."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from tests import jobs, prometheus_server
from tests.prometheus_server import Prometheus, promtool
from tests.trainyard_server import PROGRAM, ROOT, Server, wait_for

RULES = pathlib.Path(ROOT) / "packaging" / "prometheus"
DASHBOARDS = sorted((pathlib.Path(ROOT) / "packaging" / "grafana").glob("*.json"))
PAGE = pathlib.Path(ROOT) / "docs" / "operating" / "prometheus.md"
TIMEOUT_SECONDS = 60
TEXT, OPENMETRICS = "text/plain", "application/openmetrics-text;version=1.0.0"
NAMESPACE = "/aws/sagemaker/TrainingJobs"
# Metrics of a host that does not exist, so that no agent measures them as well.
OTHER_HOST = "algo-9"
OTHER_HOST_METRICS = (
    "GPUUtilization",
    "GPUMemoryUtilization",
    "InputBytesFetched",
    "InputBytesFromCache",
    "Other",
)
HOSTILE = 'a"b\\c{}\n,=é'
SCRIPT = (
    "echo 'loss=0.25;'; "
    """printf '{"MetricName": "tricky \\\\"{}=\\\\\\\\", "Value": 7}\\n' """
    ">$SAGEMAKER_METRICS_DIRECTORY/own.json; sleep 600"
)
# PromQL's keywords, and the series that Prometheus itself makes.
WORDS = {"by", "le", "on", "or", "and", "unless", "without", "up", "bool"}


def token_of(server: Server, *more: str, **keys: str) -> str:
    done = subprocess.run(
        [PROGRAM, "metrics-token", *more],
        env=server.environment() | keys,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return done.stdout.strip()


def scrape(server: Server, token: str | None, accept: str = TEXT) -> tuple[int, str, str]:
    """Returns (status, content type, body)."""
    request = urllib.request.Request(f"http://{server.listen}/metrics", headers={"Accept": accept})
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["Content-Type"], refused.read().decode()


def families(text: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+) ", text, re.M))


def put_metric(server: Server, name: str, value: float, **dimensions: str) -> None:
    server.boto("cloudwatch").put_metric_data(
        Namespace=NAMESPACE,
        MetricData=[
            {
                "MetricName": name,
                "Value": value,
                "Dimensions": [{"Name": n, "Value": v} for n, v in dimensions.items()],
            }
        ],
    )


@pytest.fixture(scope="module")
def served(start: Callable[..., Server]) -> Server:
    """Starts a server with a running job that has metrics."""
    server = start(
        "[jobs]\nstop_grace_seconds = 1\n[prometheus]\nseries_of_job_max = 50\n"
        '[[access_key]]\nid = "AKIAOWNER"\nsecret = "owner-secret"\nuser = "owner"\n'
        '[[access_key]]\nid = "AKIABOB"\nsecret = "bob-secret"\nuser = "bob"\n'
        '[[user]]\nname = "bob"\npolicies = ["scrape"]\n'
        '[[policy]]\nname = "scrape"\ndocument = """{"Version": "2012-10-17", "Statement": '
        '{"Effect": "Allow", "Action": "trainyard:GetMetrics", "Resource": "*"}}"""\n'
    )
    server.boto("s3").create_bucket(Bucket="yard")
    server.boto("s3").put_object(Bucket="yard", Key="a", Body=b"1")
    sagemaker = server.boto("sagemaker")
    request = jobs.request("digits", SCRIPT, hosts=2)
    request["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": "train:loss", "Regex": "loss=([0-9.]+);"}
    ]
    sagemaker.create_training_job(**request)
    jobs.wait_until(sagemaker, "digits", ("Training",))
    token = token_of(server)
    for text in (
        'metric="train:loss"} 0.25',
        'metric="tricky \\"{}=\\\\"} 7',
        'host="algo-2"',
    ):
        wait_for(lambda text=text: text in scrape(server, token)[2], f"{text} in a scrape")
    for name in OTHER_HOST_METRICS:
        put_metric(server, name, 50, Host=f"digits/{OTHER_HOST}")
    put_metric(server, HOSTILE, 3, TrainingJobName="digits")
    subprocess.run(
        [PROGRAM, "scrub", "--data", server.data],
        check=True,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
    )
    return server


@pytest.fixture(scope="module")
def prometheus(served: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Starts Prometheus with the documented scrape config and the shipped rules."""
    place = tmp_path_factory.mktemp("prometheus")
    (place / "token").write_text(token_of(served), encoding="utf-8")
    documented = re.search(
        r"^```yaml\n(scrape_configs:.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S
    )
    assert documented
    config = documented[1]
    for before, after in (
        ("/etc/prometheus/trainyard.token", str(place / "token")),
        ("/etc/prometheus/trainyard-ca.pem", f"{served.data}/tls/ca.pem"),
        ("trainyard.example.org:4566", served.listen),
    ):
        assert before in config
        config = config.replace(before, after)
    one = Prometheus(
        place,
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: [{RULES}/alerts.yml]\n" + config,
    ).start()
    yield one
    one.stop()


def test_the_shipped_scrape_config_is_the_documented_one() -> None:
    shipped = (RULES / "scrape.yml").read_text("utf-8")
    assert shipped[shipped.index("scrape_configs:") :] in PAGE.read_text("utf-8")


def test_promtool_finds_no_fault_in_a_scrape(served: Server) -> None:
    status, content_type, text = scrape(served, token_of(served))
    assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert promtool("check", "metrics", text=text) == ""
    assert HOSTILE.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') in text


def test_openmetrics_has_the_same_families(served: Server) -> None:
    token = token_of(served)
    status, content_type, text = scrape(served, token, OPENMETRICS)
    assert (status, content_type) == (
        200,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )
    assert text.endswith("# EOF\n")
    plain = {name.removesuffix("_total") for name in families(scrape(served, token)[2])}
    assert families(text) == plain


def test_prometheus_scrapes_by_the_documented_config(
    served: Server, prometheus: Prometheus
) -> None:
    def up() -> bool:
        return prometheus.value('up{job="trainyard"}') == 1

    wait_for(up, "a scrape")
    target = prometheus.get("targets")["activeTargets"][0]
    assert target["lastError"] == "", target
    assert prometheus.value('trainyard_job_metric{metric="train:loss"}') == 0.25
    assert prometheus.value('trainyard_job_metric{metric="tricky \\"{}=\\\\"}') == 7
    hostile = prometheus.query("trainyard_job_metric == 3")
    assert [one["metric"]["metric"] for one in hostile] == [HOSTILE]
    found = prometheus.query("trainyard_job_info")
    assert [one["metric"]["job_name"] for one in found] == ["digits"]
    assert found[0]["metric"]["job"] == "trainyard"
    assert found[0]["metric"]["state"] == "active"
    assert prometheus.value('trainyard_jobs{state="active"}') == 1
    assert prometheus.value('trainyard_hosts{state="running"}') == 2
    gpus = prometheus.value(f'trainyard_job_host_gpu_used_gpus{{host="{OTHER_HOST}"}}')
    assert gpus == 0.5

    def both_hosts() -> bool:
        cores = prometheus.query("trainyard_job_host_cpu_used_cores")
        return {one["metric"]["host"] for one in cores} == {"algo-1", "algo-2"}

    wait_for(both_hosts, "the processors of both hosts")
    assert prometheus.value("process_resident_memory_bytes") > 1e6
    wait_for(
        lambda: prometheus.value(
            "histogram_quantile(0.5, sum by (le) (trainyard_scrape_seconds_bucket))"
        ),
        "the time of a scrape",
    )


def test_promtool_finds_no_fault_in_the_rules() -> None:
    promtool("check", "rules", str(RULES / "alerts.yml"))
    promtool("test", "rules", "alerts_test.yml", directory=str(RULES))
    alerts = set(re.findall(r"- alert: (\w+)", (RULES / "alerts.yml").read_text("utf-8")))
    tested = set(re.findall(r"alertname: (\w+)", (RULES / "alerts_test.yml").read_text("utf-8")))
    assert alerts == tested, "each alert has a test"


def test_prometheus_evaluates_the_rules(prometheus: Prometheus) -> None:
    def evaluated() -> bool:
        rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
        return bool(rules) and all(rule["health"] == "ok" for rule in rules)

    wait_for(evaluated, "all rules to be evaluated")


def names_in(expression: str) -> set[str]:
    """Returns the metrics that an expression of PromQL names."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]', " ", expression)
    bare = re.sub(r"\b(?:by|without|on)\s*\([^)]*\)", " ", bare)
    return set(re.findall(r"\b[a-zA-Z_]\w*\b(?!\s*\()", bare)) - WORDS


def test_rules_and_dashboards_name_series_that_exist(served: Server) -> None:
    text = scrape(served, token_of(served))[2]
    exposed = set(re.findall(r"^(\w+)[{ ]", text, re.M))
    used = set()
    for expression in re.findall(
        r"expr: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", (RULES / "alerts.yml").read_text("utf-8")
    ):
        used |= names_in("".join(expression))
    assert len(DASHBOARDS) == 2
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text("utf-8"))
        ids = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(ids)) == len(ids)
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                used |= names_in(target["expr"])
        for variable in dashboard["templating"]["list"][1:]:
            used.add(re.match(r"label_values\((\w+)", variable["definition"])[1])
    assert used - exposed == set()
    described = set(re.findall(r"`(trainyard_job_\w+)`", PAGE.read_text("utf-8")))
    assert described == {name for name in families(text) if name.startswith("trainyard_job_")}


def test_a_token_shows_what_its_user_may_see(served: Server) -> None:
    bob = {"AWS_ACCESS_KEY_ID": "AKIABOB", "AWS_SECRET_ACCESS_KEY": "bob-secret"}
    status, _, text = scrape(served, token_of(served, **bob))
    assert status == 200
    assert families(text) == {"trainyard_job_series_left_out"}
    assert "digits" not in text
    assert scrape(served, token_of(served, "--write", **bob))[0] == 401
    assert scrape(served, "wrong")[:1] == (401,)
    status, _, refusal = scrape(served, None)
    assert status == 403
    assert "trainyard" not in refusal


def test_values_survive_a_restart_and_end_with_their_job(start: Callable[..., Server]) -> None:
    server = start("[jobs]\nstop_grace_seconds = 1\n")
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("one", "sleep 600"))
    jobs.wait_until(sagemaker, "one", ("Training",))
    put_metric(server, "loss", 2.5, TrainingJobName="one")
    token = token_of(server)
    assert 'metric="loss"} 2.5' in scrape(server, token)[2]
    server.kill()
    server.start()
    assert 'metric="loss"} 2.5' in scrape(server, token)[2]
    server.boto("sagemaker").stop_training_job(TrainingJobName="one")
    jobs.wait_until(server.boto("sagemaker"), "one")
    assert 'job_name="one"' not in scrape(server, token)[2]


def test_a_token_of_the_configuration_is_read_again(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "scrape.token"
    file.write_text("first-token-of-tests\n", encoding="utf-8")
    config = f'[[prometheus.tokens]]\ntoken_file = "{file}"\n'
    server = start(config)
    assert scrape(server, "first-token-of-tests")[0] == 200
    file.write_text("other-token-of-tests\n", encoding="utf-8")
    server.reload(config)
    wait_for(lambda: scrape(server, "other-token-of-tests")[0] == 200, "the new token")
    assert scrape(server, "first-token-of-tests")[0] == 401


def test_many_series_of_one_job_are_limited_and_counted(start: Callable[..., Server]) -> None:
    server = start("[prometheus]\nseries_of_job_max = 100\n")
    server.boto("s3").create_bucket(Bucket="yard")
    server.boto("sagemaker").create_training_job(**jobs.request("many", "sleep 600"))
    jobs.wait_until(server.boto("sagemaker"), "many", ("Training",))
    cloudwatch = server.boto("cloudwatch")
    for first in range(0, 1000, 500):
        cloudwatch.put_metric_data(
            Namespace=NAMESPACE,
            MetricData=[
                {
                    "MetricName": f"m{i}",
                    "Value": i,
                    "Dimensions": [{"Name": "TrainingJobName", "Value": "many"}],
                }
                for i in range(first, first + 500)
            ],
        )
    text = scrape(server, token_of(server))[2]
    kept = len(re.findall(r"^trainyard_job_(?:metric|host_\w+)\{", text, re.M))
    assert kept == 100
    left_out = re.search(r"^trainyard_job_points_left_out_total\{.*\} (\d+)$", text, re.M)
    assert left_out and int(left_out[1]) >= 900
    assert prometheus_server.promtool("check", "metrics", text=text) == ""
