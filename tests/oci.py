"""Makes OCI images, and runs Debian's registry for them."""

from __future__ import annotations

import crypt
import gzip
import hashlib
import io
import json
import os
import re
import socket
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from typing import Any

from tests import trainyard_server

BUSYBOX = "/bin/busybox"
Member = tuple[tarfile.TarInfo, bytes]  # of a layer, with its content
APPLETS = ("sh", "hostname", "echo", "cat", "pwd", "ls", "sleep", "stat", "touch", "mkdir")


def umoci(*arguments: str) -> None:
    subprocess.run(["umoci", *arguments], check=True, capture_output=True)


def file(name: str, content: bytes = b"", mode: int = 0o644, **more: Any) -> Member:
    """Returns a member of a layer: a file, or with kind= another type."""
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(content), mode, 1_700_000_000
    member.type = more.pop("kind", tarfile.REGTYPE)
    for key, value in more.items():
        setattr(member, key, value)
    return member, content


def directory(name: str, mode: int = 0o755) -> Member:
    return file(name, mode=mode, kind=tarfile.DIRTYPE)


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Member:
    return file(name, mode=0o777, kind=kind, linkname=target)


def base() -> list[Member]:
    """Returns the lowest layer: Busybox and the files that jobs expect."""
    with open(BUSYBOX, "rb") as program:
        content = program.read()
    members = [
        directory("bin"),
        directory("tmp", 0o1777),
        directory("opt"),
        file("bin/busybox", content, 0o755),
    ]
    return members + [link(f"bin/{applet}", "busybox") for applet in APPLETS]


class Layout:
    """Is an OCI layout below `path`; image(tag, layers, config) adds an image and returns its
    digest."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(path)
        os.makedirs(os.path.join(self.path, "blobs", "sha256"))
        self.manifests: list[dict[str, Any]] = []
        self.write("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())

    def write(self, name: str, content: bytes) -> None:
        """Replaces the file atomically: a server may read the index while an image is added."""
        path = os.path.join(self.path, name)
        with open(path + ".new", "wb") as out:
            out.write(content)
        os.replace(path + ".new", path)

    def blob(self, content: bytes, media_type: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        self.write(f"blobs/sha256/{digest}", content)
        return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(content)}

    def image(
        self, tag: str, layers: Iterable[Iterable[Member]], config: Mapping[str, Any] | None = None
    ) -> str:
        descriptors, plain = [], []
        for members in layers:
            archive = io.BytesIO()
            with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
                for member, content in members:
                    tar.addfile(member, io.BytesIO(content) if content else None)
            plain.append("sha256:" + hashlib.sha256(archive.getvalue()).hexdigest())
            descriptors.append(
                self.blob(
                    gzip.compress(archive.getvalue(), 1, mtime=0),
                    "application/vnd.oci.image.layer.v1.tar+gzip",
                )
            )
        described = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], **(config or {})},
            "rootfs": {"type": "layers", "diff_ids": plain},
        }
        manifest: dict[str, Any] = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.blob(
                json.dumps(described).encode(), "application/vnd.oci.image.config.v1+json"
            ),
            "layers": descriptors,
        }
        made = self.blob(json.dumps(manifest).encode(), manifest["mediaType"])
        self.manifests.append(made | {"annotations": {"org.opencontainers.image.ref.name": tag}})
        self.write(
            "index.json", json.dumps({"schemaVersion": 2, "manifests": self.manifests}).encode()
        )
        return made["digest"]


class Registry:
    """Runs Debian's docker-registry on a loopback port. `users`: name -> password of each permitted
    user; empty: all users are permitted."""

    def __init__(
        self, path: str | os.PathLike[str], users: Mapping[str, str] | None = None
    ) -> None:
        self.path = str(path)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.host = f"127.0.0.1:{free.getsockname()[1]}"
        self.log_path = os.path.join(self.path, "log")
        config = {
            "version": 0.1,
            "log": {"accesslog": {"disabled": False}},
            "storage": {"filesystem": {"rootdirectory": os.path.join(self.path, "data")}},
            "http": {"addr": self.host},
        }
        if users:
            with open(os.path.join(self.path, "htpasswd"), "w", encoding="utf-8") as out:
                for name, password in users.items():
                    salt = crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)
                    out.write(f"{name}:{crypt.crypt(password, salt)}\n")
            config["auth"] = {
                "htpasswd": {"realm": "tests", "path": os.path.join(self.path, "htpasswd")}
            }
        with open(os.path.join(self.path, "config.yml"), "w", encoding="utf-8") as out:
            json.dump(config, out)  # JSON is YAML
        self.start()

    def start(self) -> None:
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                ["docker-registry", "serve", os.path.join(self.path, "config.yml")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        host, port = self.host.split(":")

        def answers() -> bool:
            assert self.process.poll() is None, self.log()
            with socket.socket() as attempt:
                return attempt.connect_ex((host, int(port))) == 0

        trainyard_server.wait_for(answers, "the registry to listen", 30)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def log(self) -> str:
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def given(self, repository: str) -> list[str]:
        """Returns the digests of the fetched blobs, one for each fetch."""
        return re.findall(
            rf'"GET /v2/{repository}/blobs/(sha256:[0-9a-f]+) HTTP/1.1" 200', self.log()
        )

    def push(
        self, layout: Layout, tag: str, repository: str, login: tuple[str, str] | None = None
    ) -> str:
        """Pushes an image; returns its name. `login`: name and password."""
        name = f"{self.host}/{repository}:{tag}"
        credentials = [f"--dest-creds={login[0]}:{login[1]}"] if login else []
        subprocess.run(
            [
                "skopeo",
                "--insecure-policy",
                "copy",
                "--quiet",
                "--dest-tls-verify=false",
                *credentials,
                f"oci:{layout.path}:{tag}",
                f"docker://{name}",
            ],
            check=True,
            capture_output=True,
        )
        return name
