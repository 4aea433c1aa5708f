"""Makes the image of packaging/image/build for tests, and the directory with its files."""

import json
import pathlib
import subprocess

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
