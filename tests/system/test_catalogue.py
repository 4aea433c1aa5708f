"""Tests the catalogue in a real PostgreSQL: the same statements, the same campaigns, and a database
server that is stopped and restarted."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests import trainyard_server
from tests.postgres_server import Postgres
from tests.trainyard_server import Server, wait_for


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    cluster = Postgres().start()
    cluster.sql("CREATE USER yard")
    cluster.sql("CREATE DATABASE catalogue OWNER yard")
    yield cluster
    cluster.clean()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Server]:
    config = (
        '[network]\npool = "10.217.0.0/16"\n[catalogue]\n'
        f'url = "{postgres.url("catalogue", "yard")}"\n'
        '[[machine]]\nname = "m1"\ncpus = 4.0\nmemory_gib = 16.0\n'
    )
    running = trainyard_server.Server(tmp_path_factory.mktemp("catalogue") / "data", config).start()
    yield running
    running.clean()


def campaign(
    server: Server, *arguments: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [trainyard_server.PROGRAM, "campaign", *arguments],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not check or done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done


def rows(server: Server, sql: str) -> tuple[list[str], list[list[Any]]]:
    answer = json.loads(campaign(server, "query", sql, "--json").stdout)
    return answer["Columns"], [row["Values"] for row in answer["Rows"]]


def test_statements_are_postgresqls(server: Server, postgres: Postgres) -> None:
    assert (
        campaign(
            server,
            "change",
            "INSERT INTO datasets (name, region, uri, bytes) VALUES ('a', 'us-east-1', 's3://b/a/',"
            " 7); CREATE TABLE grid (lr numeric); INSERT INTO grid VALUES (0.1), (0.2)",
        ).stdout
        == "2 rows changed\n"
    )
    assert rows(
        server, "SELECT name, bytes, lr, NULL AS nothing FROM datasets CROSS JOIN grid ORDER BY lr"
    ) == (["name", "bytes", "lr", "nothing"], [["a", "7", "0.1", ""], ["a", "7", "0.2", ""]])
    assert rows(
        server,
        "SELECT hosts_total, hosts_free, on_demand_per_hour > 0 FROM capacity JOIN prices USING"
        " (region, instance_type) WHERE instance_type = 'ml.m5.large'",
    )[1] == [["2", "2", "t"]]
    refused = {
        "SELECT * FROM absent": 'relation "absent" does not exist',
        "DELETE FROM grid": "syntax error",
        "SELECT 1; SELECT 2": "multiple commands",
        "COMMIT": "syntax error",
        "SELECT pg_sleep(1) FROM grid WHERE": "syntax error",
        "INSERT INTO grid VALUES (1) RETURNING lr": "syntax error",
    }
    for statement, words in refused.items():
        assert words in campaign(server, "query", statement, check=False).stderr, statement
    done = campaign(
        server,
        "change",
        "INSERT INTO grid VALUES (0.3); INSERT INTO datasets (name) VALUES ('a')",
        check=False,
    )
    assert done.returncode == 1 and "duplicate key" in done.stderr
    assert rows(server, "SELECT count(*) FROM grid")[1] == [["2"]]  # both or none


def test_queries_change_nothing_and_reach_no_files(server: Server, postgres: Postgres) -> None:
    for statement, words in {
        "COPY (SELECT 1) TO PROGRAM 'touch /tmp/catalogue-attack'": "syntax error",
        "COPY grid TO '/tmp/catalogue-attack'": "syntax error",
        "WITH gone AS (DELETE FROM grid RETURNING lr) SELECT * FROM gone": "data-modifying",
        "SELECT * INTO other FROM grid": "INTO",
        "SELECT lr FROM grid FOR UPDATE": "read-only transaction",
        "SELECT query_to_xml('DELETE FROM grid', true, true, '')": "DELETE is not allowed",
        "SELECT pg_read_file('/etc/passwd')": "permission denied",
        "SELECT set_config('transaction_read_only', 'off', false)": "read-write",
        "DO $$ BEGIN DELETE FROM grid; END $$": "syntax error",
        "SELECT 1 FROM generate_series(1, 200000)": "rows",
    }.items():
        assert words in campaign(server, "query", statement, check=False).stderr, statement
    # A busy machine takes longer over 64 MiB than a statement may.
    large = campaign(
        server, "query", "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)", check=False
    ).stderr
    assert "answer has more than" in large or "statement timeout" in large, large
    assert rows(server, "SELECT count(*) FROM grid")[1] == [["2"]]
    assert not os.path.exists("/tmp/catalogue-attack")


def test_a_superuser_is_refused_and_queries_may_have_a_role_of_their_own(
    postgres: Postgres, tmp_path: pathlib.Path
) -> None:
    postgres.sql("CREATE USER reader")
    own = 'pool = "10.218.0.0/16"'
    config = (
        f'[network]\n{own}\n[catalogue]\nurl = "{postgres.url("catalogue", "yard")}"\nquery_url ='
        f' "{postgres.url("catalogue", "reader")}"\n'
    )
    running = trainyard_server.Server(tmp_path / "reader", config).start()
    try:
        assert (
            "permission denied"
            in campaign(running, "query", "SELECT * FROM datasets", check=False).stderr
        )
        campaign(
            running,
            "change",
            "CREATE TABLE public_words (word text); GRANT SELECT ON public_words TO reader; INSERT"
            " INTO public_words VALUES ('a')",
        )
        assert rows(running, "SELECT * FROM public_words")[1] == [["a"]]
    finally:
        running.clean()
    running = trainyard_server.Server(
        tmp_path / "super",
        f'[network]\n{own}\n[catalogue]\nurl = "{postgres.url("catalogue")}"\n',
    ).start()
    try:
        for operation, statement in (("query", "SELECT 1"), ("change", "CREATE TABLE x (a int)")):
            assert "superuser" in campaign(running, operation, statement, check=False).stderr
    finally:
        running.clean()


def test_objects_become_rows_and_rows_become_jobs(
    server: Server, postgres: Postgres, tmp_path: pathlib.Path
) -> None:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="incoming")
    file = tmp_path / "rows.json"
    file.write_text(
        json.dumps(
            {
                "name": "rows",
                "standing": True,
                "query": (
                    "SELECT name, region, uri AS data, bytes FROM datasets WHERE uri LIKE"
                    " 's3://incoming/%'"
                ),
                "watch": [
                    {
                        "uri": "s3://incoming/",
                        "row": {
                            "name": "{stem}",
                            "region": "{region}",
                            "uri": "{uri}",
                            "bytes": "{bytes}",
                        },
                    }
                ],
                "training_job": {
                    "image": "trainyard/host",
                    "command": [
                        "/bin/sh",
                        "-c",
                        "grep -q 3 /opt/ml/input/config/hyperparameters.json",
                    ],
                    "instance_type": "ml.m5.large",
                    "volume_gib": 1,
                    "hyperparameters": {"bytes": "{bytes}"},
                },
            }
        )
    )
    campaign(server, "run", str(file))

    def states() -> dict[str, Any]:
        return {
            row["Label"]: row["State"]
            for row in json.loads(campaign(server, "show", "rows", "--json").stdout)["Rows"]
        }

    s3.put_object(Bucket="incoming", Key="one.bin", Body=b"123")
    wait_for(lambda: states() == {"one": "completed"}, "the object's job")
    postgres.stop()
    s3.put_object(Bucket="incoming", Key="two.bin", Body=b"123")
    wait_for(
        lambda: "Trouble" in json.loads(campaign(server, "show", "rows", "--json").stdout),
        "the catalogue to be missed",
    )
    postgres.start()
    s3.put_object(Bucket="incoming", Key="three.bin", Body=b"123")
    wait_for(
        lambda: states() == dict.fromkeys(("one", "two", "three"), "completed"), "the objects' jobs"
    )
    campaign(server, "stop", "rows")
