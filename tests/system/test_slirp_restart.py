"""Tests that the egress of an ordinary user's jobs returns after slirp4netns has died."""

import os
import signal
from collections.abc import Callable

from tests.system.test_egress import HERE, THERE, outside  # noqa: F401, a fixture
from tests.system.test_ordinary_user import (
    BOX,
    User,
    run,
    said_by_job,
    start_as,  # noqa: F401, a fixture
    tun,  # noqa: F401, a fixture
    user,  # noqa: F401, a fixture
    user_of_one_id,  # noqa: F401, a fixture
)
from tests.trainyard_server import Server, wait_for


def slirps(user: User, server: Server) -> list[int]:  # noqa: F811, a fixture
    return [
        process
        for process, words in user.processes()
        if words.startswith("slirp4netns") and server.data in words
    ]


def no_egress(server: Server) -> str:
    """Returns the text that tells jobs why they have no egress; "" while they have it."""
    with open(os.path.join(server.data, "enclosure", "keeper"), encoding="utf-8") as file:
        holder = file.read().split()[0]
    path = f"/proc/{holder}/root{server.data}/enclosure/run/no-way-out"
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_slirp4netns_is_started_again_when_it_dies(
    user: User,  # noqa: F811
    start_as: Callable[..., Server],  # noqa: F811
    outside: None,  # noqa: F811
    tun: Callable[..., list[str]],  # noqa: F811
) -> None:
    config = BOX + f"[network]\nname_servers = ['10.231.7.2']\nallow = ['{THERE}']\n"
    server = start_as(user, "slirp", config, tun(0o666))
    server.boto("s3").create_bucket(Bucket="yard")
    gone = []
    for attempt in range(2):
        (slirp,) = slirps(user, server)
        assert slirp not in gone
        gone.append(slirp)
        os.kill(slirp, signal.SIGKILL)
        wait_for(
            lambda: set(slirps(user, server)) - set(gone) and not no_egress(server),
            "another slirp4netns",
        )
        run(
            server,
            f"again-{attempt}",
            "curl -s --retry 20 --retry-connrefused --retry-delay 1 -m 5"
            f" http://{THERE}:8000/ || echo unreached",
        )
        assert said_by_job(server, f"again-{attempt}") == [f"you are {HERE}"]
    with open(
        os.path.join(server.data, "enclosure", "holder.log"), encoding="utf-8", errors="replace"
    ) as log:
        assert log.read().count("has ended and is started again") == 2
