"""Runs podman as a peer, with an image that has only busybox."""

from __future__ import annotations

import os
import subprocess

IMAGE = "localhost/trainyard-bench:1"


def podman_environment(directory: str) -> dict[str, str]:
    """Returns the environment of podman, configured for hybrid cgroups and for machines where it
    may not raise limits."""
    config = os.path.join(directory, "containers.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024",'
            ' "nproc=4096:4096"]\n[engine]\ncgroup_manager = "cgroupfs"\n'
        )
    return dict(os.environ, CONTAINERS_CONF=config)


def podman_script(environment: dict[str, str], script: str, *arguments: str) -> str:
    hide = "set -e; umount /sys/fs/cgroup/unified 2>/dev/null || true; "
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", hide + script, "sh", *arguments],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def podman(environment: dict[str, str], *arguments: str) -> str:
    return podman_script(environment, 'exec podman "$@"', *arguments)


def uptime() -> float:
    """Returns the machine's uptime, which a container can read without GNU date."""
    with open("/proc/uptime", encoding="utf-8") as file:
        return float(file.read().split()[0])


def make_image(environment: dict[str, str]) -> None:
    podman_script(
        environment,
        f"""c=$(buildah from scratch)
        m=$(buildah mount $c)
        mkdir -p $m/bin
        cp /bin/busybox $m/bin/busybox
        for a in sh date cat sleep yes head; do ln -s busybox $m/bin/$a; done
        buildah umount $c >/dev/null
        buildah config --env PATH=/bin $c
        buildah commit -q $c {IMAGE} >/dev/null
        buildah rm $c >/dev/null""",
    )


def podman_start_milliseconds(environment: dict[str, str]) -> float:
    """Returns the milliseconds from `podman run` to the user's process."""
    requested = uptime()
    began = float(
        podman(
            environment, "run", "--rm", "--network=bridge", IMAGE, "sh", "-c", "cat /proc/uptime"
        ).split()[0]
    )
    return (began - requested) * 1000
