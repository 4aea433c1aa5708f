"""Starts a Kubernetes cluster with two nodes, whose pods have names."""

from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from tests.kubelets.node import PAUSE, Node, restored_sysctls
from tests.kubernetes.cluster import ADMIN_TOKEN, PROGRAMS, Cluster
from tests.kubernetes.conftest import IMAGE
from tests.kubernetes.images import archive_image, archive_program, build_image
from tests.kubernetes.network import GATEWAY
from tests.trainyard_server import wait_for

# A kubelet reports each second. In the time of a busy machine a node is not lost by chance.
NODE_SECONDS = 20
POD_SECONDS = 5
DNS = f"""
.:53 {{
  bind {GATEWAY}
  errors
  kubernetes cluster.local {{
    kubeconfig %s
  }}
}}
"""
PAUSE_PROGRAM = "#include <unistd.h>\nint main() { for (;;) pause(); }\n"


@contextlib.contextmanager
def control_plane() -> Iterator[Cluster]:
    """Yields a cluster with DNS, without nodes."""
    directory = tempfile.mkdtemp(prefix="ty-kubelets-")
    one = Cluster(directory, NODE_SECONDS, POD_SECONDS)
    try:
        one.start()
        access = one.write("dns.json", json.dumps(one.kubeconfig(ADMIN_TOKEN)))
        config = one.write("Corefile", DNS % access)
        one.launch("dns", [f"{PROGRAMS}/coredns"], "-conf", config)
        yield one
    finally:
        one.stop()
        shutil.rmtree(directory, ignore_errors=True)


def archive_images(directory: pathlib.Path) -> list[str]:
    """Writes archives of the images that the nodes need."""
    source = directory / "pause.c"
    source.write_text(PAUSE_PROGRAM)
    program = directory / "pause"
    subprocess.run(["cc", "-static", "-Os", "-o", program, source], check=True)
    archives = [directory / "pause.tar", directory / "trainyard.tar"]
    archive_program(program, PAUSE, archives[0])
    archive_image(build_image(), IMAGE, archives[1])
    return [str(path) for path in archives]


@contextlib.contextmanager
def two_nodes(cluster: Cluster, images: list[str]) -> Iterator[list[Node]]:
    both = [Node(cluster, number, GATEWAY) for number in (1, 2)]
    with restored_sysctls():
        try:
            for node in both:
                node.start(images)
            both[0].join(both[1])
            both[1].join(both[0])
            for node in both:
                wait_for(node.is_ready, f"{node.name} to be ready")
            yield both
        finally:
            for node in both:
                node.stop()
