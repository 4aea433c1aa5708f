"""Lists attacks by the contents of jobs: images, archives of sources, names of objects.

Each attack is a separate job, which fails with a reason, or runs and finds nothing of the machine.
`attempt` makes the job's request in a World of stored objects; `more`: how the job ends."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from typing import Any

from tests import jobs, oci, scripts
from tests.hostile.table import JOB_LOG, NOWHERE, REASON, SERVER_LOG, Attack
from tests.trainyard_server import Server

LOOK = "#!/bin/sh\nls -l / /opt; cat /machine/secret /d/secret; head -c 1 /disk; true\n"


class World:
    def __init__(self, server: Server, images: str, machine: str | os.PathLike[str]) -> None:
        self.server, self.machine = server, str(machine)
        self.layout = oci.Layout(os.path.join(images, "layout"))
        self.images = images

    def image(
        self,
        name: str,
        *layers: list[oci.Member],
        config: dict[str, Any] | None = None,
        change: Callable[[oci.Layout], object] | None = None,
    ) -> dict[str, Any]:
        """Returns a job with an image that has these layers above valid ones; `change` corrupts the
        layout."""
        train = [oci.file("bin/train", LOOK.encode(), 0o755), oci.link("bin/head", "busybox")]
        self.layout.image(name, [oci.base() + train, *layers], config)
        if change:
            change(self.layout)
        return self.request(name, f"oci:{self.layout.path}:{name}")

    @staticmethod
    def request(name: str, image: str) -> dict[str, Any]:
        request = jobs.request(name, image=image)
        request["AlgorithmSpecification"] = {"TrainingImage": image, "TrainingInputMode": "File"}
        return request

    def sources(self, name: str, *members: oci.Member) -> dict[str, Any]:
        """Returns a job in script mode with an archive of these members."""
        request = scripts.request(self.server, name, "train.py", {"train.py": "print('ran')"})
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for member, content in members:
                tar.addfile(member, io.BytesIO(content) if content else None)
        self.server.boto("s3").put_object(
            Bucket="yard", Key=f"{name}/source/sourcedir.tar.gz", Body=buffer.getvalue()
        )
        return request

    def channel(self, name: str, key: str) -> dict[str, Any]:
        self.server.boto("s3").put_object(
            Bucket="yard", Key=f"trap/{name}/{key}", Body=b"overwritten"
        )
        return jobs.request(
            name,
            "find /opt/ml/input/data",
            channels={"train": (f"s3://yard/trap/{name}/", "FullyReplicated")},
        )


def spoil_newest_layer(layout: oci.Layout) -> None:
    """Replaces the content of the image's last layer under the same digest."""
    with open(os.path.join(layout.path, "index.json"), encoding="utf-8") as file:
        manifest = json.load(file)["manifests"][-1]["digest"].split(":")[1]
    with open(os.path.join(layout.path, "blobs", "sha256", manifest), encoding="utf-8") as file:
        layer = json.load(file)["layers"][-1]["digest"].split(":")[1]
    layout.write(f"blobs/sha256/{layer}", b"not what the digest names")


def image(
    name: str,
    tried: str,
    refused: str,
    *layers: Any,
    status: str = "Failed",
    logged: str = REASON,
    **more: Any,
) -> Attack:
    return Attack(
        name,
        tried,
        refused,
        logged,
        lambda world: world.image(
            name, *[layer(world) if callable(layer) else layer for layer in layers], **more
        ),
        (status,),
    )


def archive(
    name: str, tried: str, refused: str, *members: oci.Member | Callable[[World], oci.Member]
) -> Attack:
    return Attack(
        name,
        tried,
        refused,
        REASON,
        lambda world: world.sources(
            name, *[member(world) if callable(member) else member for member in members]
        ),
        ("Failed",),
    )


ATTACKS = (
    image(
        "image-upwards",
        "a layer whose member leads upwards",
        r"\.\.",
        [oci.file("../../escaped", b"x")],
    ),
    image(
        "image-absolute",
        "a layer with an absolute member",
        "^$",
        [oci.file("/escaped", b"x")],
        status="Completed",
        logged=NOWHERE,
    ),
    image(
        "image-through-link",
        "a layer that writes through its own link",
        "cannot be used",
        lambda world: [oci.link("d", world.machine), oci.file("d/made", b"x")],
    ),
    image(
        "image-through-lower-link",
        "a layer that writes through a lower layer's link",
        "^$",
        lambda world: [oci.link("d", world.machine)],
        [oci.file("d/made", b"x")],
        status="Completed",
        logged=NOWHERE,
    ),
    image(
        "image-whiteout",
        "a whiteout through a lower layer's link",
        "^$",
        lambda world: [oci.link("d", world.machine)],
        [oci.file("d/.wh.secret")],
        status="Completed",
        logged=NOWHERE,
    ),
    image(
        "image-hard-link",
        "a layer with a hard link to a file of the machine",
        "cannot be used",
        lambda world: [oci.link("stolen", world.machine + "/secret", tarfile.LNKTYPE)],
    ),
    image(
        "image-device",
        "a layer with the machine's disk",
        "head: .*/disk",
        [oci.file("disk", mode=0o666, kind=tarfile.BLKTYPE, devmajor=254, devminor=0)],
        status="Completed",
        logged=JOB_LOG,
    ),
    image(
        "image-link-out",
        "a link to a directory of the machine",
        "cat: .*/machine/secret",
        lambda world: [oci.link("machine", world.machine)],
        status="Completed",
        logged=JOB_LOG,
    ),
    image(
        "image-digest",
        "a layer that is not what its digest says",
        "digest",
        [oci.file("opt/x", b"x")],
        change=spoil_newest_layer,
    ),
    image(
        "image-user",
        "a user of the machine's ids",
        "ids|user",
        [oci.file("opt/y", b"y")],
        config={"User": "4294967295"},
    ),
    image(
        "image-nobody",
        "a user that its /etc/passwd lacks",
        "not in the image's /etc/passwd",
        [oci.file("opt/z", b"z")],
        config={"User": "root-of-machine"},
    ),
    image(
        "image-directory",
        "a working directory upwards",
        "^$",
        [oci.file("opt/w", b"w")],
        config={"WorkingDir": "/../../.."},
        status="Completed",
        logged=NOWHERE,
    ),
    archive(
        "sources-upwards",
        "an archive whose member leads upwards",
        "leads out of the archive",
        oci.file("../../escaped", b"x"),
    ),
    archive(
        "sources-absolute",
        "an archive with an absolute member",
        "is absolute",
        oci.file("/escaped", b"x"),
    ),
    archive(
        "sources-link",
        "an archive with a link out of it",
        "leads out of the archive",
        lambda world: oci.link("d", world.machine),
    ),
    archive(
        "sources-hard-link",
        "an archive with a hard link",
        "is a hard link",
        lambda world: oci.link("d", world.machine + "/secret", tarfile.LNKTYPE),
    ),
    archive(
        "sources-device",
        "an archive with a device",
        "neither file nor directory",
        oci.file("disk", kind=tarfile.BLKTYPE, devmajor=254, devminor=0),
    ),
    archive(
        "sources-through-link",
        "an archive that writes through its own link",
        "no directory|link",
        oci.link("d", "train.py"),
        oci.file("d/made", b"x"),
    ),
    Attack(
        "channel-upwards",
        "a channel with a key that leads upwards",
        r"\.\.",
        REASON,
        lambda world: world.channel("channel-upwards", "../../../escaped"),
        ("Failed",),
    ),
    Attack(
        "image-elsewhere",
        "an image outside the configured directories",
        "is not allowed",
        SERVER_LOG,
        lambda world: world.request("image-elsewhere", "oci:/etc:v1"),
        ("refused",),
    ),
    Attack(
        "image-out-of-directory",
        "an image upwards of them",
        "is not allowed",
        SERVER_LOG,
        lambda world: world.request("image-out-of-directory", f"oci:{world.images}/../etc:v1"),
        ("refused",),
    ),
)
