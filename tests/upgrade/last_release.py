"""Names the last release, the folder of its programs, which tests/upgrade/prepare builds, and the
names that it uses in place of the current ones."""

import os

from tests.trainyard_server import ROOT

with open(os.path.join(ROOT, "packaging", "releases.txt"), encoding="utf-8") as file:
    VERSION = [line.split()[0] for line in file if line.strip() and not line.startswith("#")][-1]
BUILD = os.path.join(ROOT, "build", "releases", VERSION, "build", "release")
PROGRAMS = os.path.join(BUILD, "bin")
# The host's own file system as an image. Today's programs accept this name too, as deprecated.
HOST_IMAGE = "trainyard/machine"
