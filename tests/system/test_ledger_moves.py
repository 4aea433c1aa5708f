"""Tests that a ledger moves to PostgreSQL and back with all its content, and that a backup of a
running server is restored."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Iterator

import pytest

from tests import trainyard_server
from tests.postgres_server import Postgres
from tests.trainyard_server import Server

POOL = '[network]\npool = "10.234.0.0/16"\n'


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    cluster = Postgres().start()
    yield cluster
    cluster.clean()


def trainyard(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [trainyard_server.PROGRAM, *arguments], capture_output=True, text=True, timeout=60
    )
    assert not check or done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done


def in_database(postgres: Postgres, database: str) -> str:
    return f'{POOL}[ledger]\nurl = "{postgres.url(database)}"\n'


def fill(server: Server) -> None:
    server.aws("iam", "create-user", "--user-name", "ann")
    server.aws(
        "batch",
        "create-compute-environment",
        "--compute-environment-name",
        "here",
        "--type",
        "MANAGED",
        "--compute-resources",
        "type=EC2,maxvCpus=8",
    )
    cloudwatch = server.boto("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="late",
        Namespace="team",
        MetricName="loss",
        Statistic="Average",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1.0,
        ComparisonOperator="GreaterThanThreshold",
    )
    cloudwatch.put_dashboard(DashboardName="team", DashboardBody='{"widgets": []}')
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="kept")
    s3.put_object(Bucket="kept", Key="a", Body=b"bytes")


def check(server: Server) -> None:
    assert [user["UserName"] for user in server.aws("iam", "list-users")["Users"]] == ["ann"]
    environments = server.aws("batch", "describe-compute-environments")["computeEnvironments"]
    assert [each["computeEnvironmentName"] for each in environments] == ["here"]
    cloudwatch = server.boto("cloudwatch")
    alarms = cloudwatch.describe_alarms()["MetricAlarms"]
    assert [each["AlarmName"] for each in alarms] == ["late"]
    dashboards = cloudwatch.list_dashboards()["DashboardEntries"]
    assert [each["DashboardName"] for each in dashboards] == ["team"]


def check_objects(server: Server) -> None:
    s3 = server.boto("s3")
    assert s3.get_object(Bucket="kept", Key="a")["Body"].read() == b"bytes"


def test_a_ledger_moves_to_postgresql_and_back(tmp_path: pathlib.Path, postgres: Postgres) -> None:
    postgres.sql("CREATE DATABASE moves")
    server = Server(tmp_path / "data", POOL).start()
    try:
        fill(server)
        config = tmp_path / "database.toml"
        config.write_text(in_database(postgres, "moves"))
        copy = ["ledger", "copy", "--data", server.data, "--config", str(config), "--to"]
        refused = trainyard(*copy, "database", check=False)
        assert refused.returncode == 1 and "stop all servers" in refused.stderr
        server.stop()
        assert "copied" in trainyard(*copy, "database").stdout
        refused = trainyard(*copy, "database", check=False)
        assert refused.returncode == 1 and "no ledger found" in refused.stderr, refused.stderr
        server.config = in_database(postgres, "moves")
        server.start()
        check(server)
        check_objects(server)
        exports = trainyard("env", "--data", server.data, "--user", "ann", check=False)
        assert "no active access key" in exports.stderr, "the user of the database was found"
        server.stop()
        trainyard(*copy, "file")
        refused = trainyard(*copy, "file", check=False)
        assert refused.returncode == 1 and "has content" in refused.stderr
        server.config = POOL
        server.start()
        check(server)
        check_objects(server)
        server.stop()
        # The file of the first copy still exists: the command reports it before it copies anything.
        postgres.sql("CREATE DATABASE moves_again")
        config.write_text(in_database(postgres, "moves_again"))
        refused = trainyard(*copy, "database", check=False)
        assert refused.returncode == 1 and "move it away" in refused.stderr, refused.stderr
        schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'trainyard_ledger'"
        assert postgres.rows(schemas, "moves_again") == [["0"]]
        kept = pathlib.Path(server.data) / "ledger.db.copied"
        kept.rename(tmp_path / "kept.db")
        trainyard(*copy, "database")
        assert kept.exists() and not list(kept.parent.glob("ledger.db-*"))
        server.config = in_database(postgres, "moves_again")
        server.start()
        check(server)
    finally:
        server.clean()


@pytest.mark.parametrize("stored", ["file", "database"])
def test_a_backup_of_a_running_server_is_restored(
    tmp_path: pathlib.Path, postgres: Postgres, stored: str
) -> None:
    config = POOL
    if stored == "database":
        postgres.sql("CREATE DATABASE backed_up")
        config = in_database(postgres, "backed_up")
    server = Server(tmp_path / "data", config).start()
    copied = str(tmp_path / "backup")
    try:
        fill(server)
        trainyard("backup", "--data", server.data, "--to", copied)
        refused = trainyard("backup", "--data", server.data, "--to", copied, check=False)
        assert refused.returncode == 1 and "already exists" in refused.stderr
        server.aws("iam", "create-user", "--user-name", "bob")
        key = server.env["AWS_ACCESS_KEY_ID"]
    finally:
        server.clean()
    if stored == "database":
        config = in_database(postgres, "restored")
    again = Server(tmp_path / "again", config)
    file = tmp_path / "again.toml"
    file.write_text(config)
    restore = ["restore", "--data", again.data, "--config", str(file), "--from", copied]
    if stored == "database":
        failed = trainyard(*restore, check=False)
        assert failed.returncode == 1 and "does not exist" in failed.stderr, failed.stderr
        postgres.sql("CREATE DATABASE restored")
    trainyard(*restore)
    refused = trainyard(*restore, check=False)
    assert refused.returncode == 1 and "restore to a new directory" in refused.stderr
    again.start()
    try:
        check(again)
        assert again.env["AWS_ACCESS_KEY_ID"] == key
    finally:
        again.clean()


def test_a_server_says_why_it_cannot_use_a_database(
    tmp_path: pathlib.Path, postgres: Postgres
) -> None:
    postgres.sql("CREATE DATABASE first")

    def start(name: str, config: str) -> str:
        data = tmp_path / name
        file = tmp_path / f"{name}.toml"
        file.write_text(config)
        done = trainyard(
            *("serve", "--data", str(data), "--config", str(file), "--listen", "127.0.0.1:0"),
            check=False,
        )
        assert done.returncode == 1
        lines = done.stderr.strip().splitlines()
        return lines[-1]

    def of(url: str) -> str:
        return f'{POOL}[ledger]\nurl = "{url}"\n'

    server = Server(tmp_path / "data", in_database(postgres, "first")).start()
    try:
        assert "belongs to the account" in start("other", in_database(postgres, "first"))
        account = server.aws("sts", "get-caller-identity")["Account"]
        same = f'account_id = "{account}"\n' + in_database(postgres, "first")
        assert "belongs to the data directory with the id" in start("same", same)
        assert "does not exist" in start("absent", in_database(postgres, "absent"))
        assert "No such file or directory" in start("nowhere", of(f"host={tmp_path} dbname=x"))
        assert "invalid PostgreSQL URL" in start("wrong", of("postgresql://[x/y"))
        server.stop()
        postgres.sql("UPDATE trainyard_ledger.ledger SET version = 2", "first")
        assert "has version 2, but this release reads versions up to 1" in start(
            "data", in_database(postgres, "first")
        )
    finally:
        server.clean()
