"""Tests the settings for the retention of logs."""

import pathlib
import time

import pytest

from tests.trainyard_server import Server, wait_for

DAY_MILLISECONDS = 86_400_000
GROUP = "/my/group"


def streams(server: Server) -> set[str]:
    return {
        stream["logStreamName"]
        for stream in server.boto("logs").describe_log_streams(logGroupName=GROUP)["logStreams"]
    }


def test_logs_are_removed_after_the_configured_days(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path / "data").start()
    try:
        logs = server.boto("logs")
        logs.create_log_group(logGroupName=GROUP)
        now = int(time.time() * 1000)
        for stream, age_days in (("old", 3), ("new", 0)):
            logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
            logs.put_log_events(
                logGroupName=GROUP,
                logStreamName=stream,
                logEvents=[{"timestamp": now - age_days * DAY_MILLISECONDS, "message": stream}],
            )
        server.stop()
        server.start()
        assert streams(server) == {"old", "new"}, "by default they stay"
        server.stop()
        server.config = "[logs]\nretention_days = 2\n"
        server.start()
        wait_for(lambda: streams(server) == {"new"}, "the old one to go")
    finally:
        server.clean()


@pytest.mark.parametrize("days", ["-1", "40000", "'two'"])
def test_an_invalid_number_of_days_is_refused(tmp_path: pathlib.Path, days: str) -> None:
    server = Server(tmp_path / "data", f"[logs]\nretention_days = {days}\n")
    with pytest.raises(AssertionError, match="logs.retention_days"):
        server.start()
