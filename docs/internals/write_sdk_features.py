#!/usr/bin/python3
"""Writes docs/sdk-features.md from tests/journeys/sdk/features.txt.

  docs/internals/write_sdk_features.py          writes the page
  docs/internals/write_sdk_features.py --check  says whether it is up to date (tests/tidy does)

tests/journeys/test_sdk_features_2.py and _3.py use each feature of the file with both SDKs.
"""

import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from tests.reach import read  # noqa: E402

PAGE = "docs/sdk-features.md"
FEATURES = "tests/journeys/sdk/features.txt"
VERSIONS = (2, 3)
WIDTH = 120
ABSENT = "-"  # of an outcome: the SDK does not have the feature

INTRODUCTION = (
    "What each feature is here, for version {two} and version {three} of the SDK. A test uses every"
    " one of them with the unmodified SDKs."
)
OUTCOMES = """\
- **works**
- **no effect**: the setting is kept; the job's log and `trainyard describe` have this message
- **refused**: the call fails with this message; what the SDK uploaded before stays
- **fails**: the job starts, and ends with this FailureReason
- \\-: this version of the SDK does not have the feature
"""


def features() -> list[tuple[str, dict[int, str]]]:
    """(feature, outcome by the SDK's version), in the order of the file"""
    found = []
    for line in read(FEATURES).splitlines():
        if not line or line.startswith("#"):
            continue
        name, *outcomes = (part.strip() for part in line.split("|"))
        found.append((name, dict(zip(VERSIONS, outcomes, strict=True))))
    return found


def version_of(major: int) -> str:
    requirements = read(f"packaging/sagemaker{major}-requirements.txt")
    found = re.search(r"^sagemaker==([\d.]+)", requirements, re.M)
    return found[1] if found else str(major)


def cell(outcome: str) -> str:
    kind, colon, message = outcome.partition(": ")
    if outcome == ABSENT:
        return "\\-"
    return f"**{kind}**: {message}" if colon else f"**{kind}**"


def page() -> str:
    lines = [
        f"| {name} | {cell(outcomes[2])} | {cell(outcomes[3])} |" for name, outcomes in features()
    ]
    introduction = INTRODUCTION.format(two=version_of(2), three=version_of(3))
    head = [
        "# Features of the SageMaker Python SDK",
        "",
        *textwrap.wrap(introduction, WIDTH, break_on_hyphens=False),
        "",
        *OUTCOMES.splitlines(),
        "",
        "| feature | SDK 2 | SDK 3 |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *lines]) + "\n"


def main() -> int:
    if "--check" not in sys.argv[1:]:
        with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as file:
            file.write(page())
        return 0
    if not os.path.exists(os.path.join(ROOT, PAGE)) or read(PAGE) != page():
        print(f"{PAGE} is out of date: run docs/internals/write_sdk_features.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
