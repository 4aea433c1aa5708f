"""Makes images for tests: that of packaging/image/build, the directory with its files, and archives
as container runtimes import them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pathlib
import subprocess
import tarfile

from tests.trainyard_server import ROOT

LAYOUT = pathlib.Path(ROOT, "build/image")
BUILD = f"{ROOT}/packaging/image/build"


def blob(digest: str) -> pathlib.Path:
    return LAYOUT / "blobs" / digest.replace(":", "/")


def build_image() -> str:
    """Makes the image; returns the digest of its manifest."""
    subprocess.run([BUILD], check=True, capture_output=True)
    digest = json.loads((LAYOUT / "index.json").read_text())["manifests"][0]["digest"]
    assert isinstance(digest, str)
    return digest


def unpack_image(digest: str, directory: pathlib.Path) -> None:
    for layer in json.loads(blob(digest).read_text())["layers"]:
        subprocess.run(["tar", "-xzf", blob(layer["digest"]), "-C", directory], check=True)


def write_archive(path: pathlib.Path, name: str, blobs: dict[str, bytes], manifest: bytes) -> None:
    """Writes an OCI archive with one image, whose blobs are given by their digests."""
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    index = {
        "schemaVersion": 2,
        "manifests": [
            {
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": digest,
                "size": len(manifest),
                "annotations": {"io.containerd.image.name": name},
            }
        ],
    }
    files = {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": json.dumps(index).encode(),
    }
    for each, content in (blobs | {digest: manifest}).items():
        files[f"blobs/{each.replace(':', '/')}"] = content
    with tarfile.open(path, "w") as archive:
        for file, content in files.items():
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def archive_image(digest: str, name: str, path: pathlib.Path) -> None:
    """Writes the image of packaging/image/build, whose manifest has the digest, as an archive."""
    manifest = blob(digest).read_bytes()
    image = json.loads(manifest)
    parts = [image["config"], *image["layers"]]
    blobs = {part["digest"]: blob(part["digest"]).read_bytes() for part in parts}
    write_archive(path, name, blobs, manifest)


def archive_program(program: pathlib.Path, name: str, path: pathlib.Path) -> None:
    """Writes an image with one static program, which it runs."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        archive.add(program, program.name)
    packed = gzip.compress(layer.getvalue())
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}"]},
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"],
            },
        }
    ).encode()
    blobs: dict[str, bytes] = {}

    def described(kind: str, content: bytes) -> dict[str, object]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        blobs[digest] = content
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": digest, "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("config.v1+json", config),
        "layers": [described("layer.v1.tar+gzip", packed)],
    }
    write_archive(path, name, blobs, json.dumps(manifest).encode())
