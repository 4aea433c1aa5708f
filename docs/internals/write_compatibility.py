#!/usr/bin/python3
"""Writes docs/compatibility.md: what each operation of each served service is here.

  docs/internals/write_compatibility.py          writes the page
  docs/internals/write_compatibility.py --check  says whether it is up to date (tests/tidy does)

The sources are src/api/shapes/operations.txt, src/api/shapes/partial.txt, the service models of
the pinned botocore in build/venv, and the tables of members without effect in src/api.
tests/conformance/test_compatibility.py calls every operation of the page.
"""

import dataclasses
import glob
import gzip
import json
import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from tests.reach import read  # noqa: E402

PAGE = "docs/compatibility.md"
NO_EFFECT = {
    "CreateTrainingJob (SageMaker)": "src/api/sagemaker/no_effect.hpp",
    "containers of jobs (Batch)": "src/api/batch_api/no_effect.hpp",
}
OWN = "trainyard"  # not a service of AWS
WIDTH = 120


@dataclasses.dataclass(frozen=True)
class Operation:
    service: str
    name: str
    support: str  # "whole", "partial" or "absent"
    missing: str = ""


def offered() -> dict[str, list[str]]:
    """service -> its operations, both in the order of operations.txt"""
    found: dict[str, list[str]] = {}
    for service, name in re.findall(
        r"^([a-z0-9-]+) (\w+)$", read("src/api/shapes/operations.txt"), re.M
    ):
        if service != OWN:
            found.setdefault(service, []).append(name)
    return found


def model_operations(service: str) -> list[str]:
    data = os.path.join(ROOT, "build/venv/lib/python3*/site-packages/botocore/data", service)
    path = sorted(glob.glob(os.path.join(data, "*", "service-2.json.gz")))[-1]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        operations = json.load(file)["operations"]
    # Of two names of one S3 request, the deprecated one is left out.
    return sorted(
        name for name in operations if not (service == "s3" and operations[name].get("deprecated"))
    )


def partial() -> dict[tuple[str, str], str]:
    return {
        (service, name): missing
        for service, name, missing in re.findall(
            r"^([a-z0-9-]+) (\w+): (.+)$", read("src/api/shapes/partial.txt"), re.M
        )
    }


def operations() -> list[Operation]:
    """Every operation of the models of the served services."""
    missing = partial()
    found = []
    for service, names in offered().items():
        others = [name for name in model_operations(service) if name not in names]
        for name in names + others:
            if (service, name) in missing:
                found.append(Operation(service, name, "partial", missing.pop((service, name))))
            else:
                found.append(Operation(service, name, "whole" if name in names else "absent"))
    if missing:
        sys.exit(f"src/api/shapes/partial.txt has unknown operations: {sorted(missing)}")
    return found


def members_without_effect(path: str) -> list[tuple[str, str]]:
    """(member, what holds instead) from a table of NoEffect."""
    table = read(path).split("kTrainingJobNoEffect" if "sagemaker" in path else "kContainer", 1)[1]
    return re.findall(r'\{"([\w.\[\]]+)",\s*"((?:[^"\\]|\\.)+)"', table)


def wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def page() -> str:
    lines = [
        "# Compatibility with AWS's APIs",
        "",
        wrapped(
            "Every operation of each service that this server offers, by the service models of"
            " botocore. *Whole*: every member of the request has its effect, or is rejected as on"
            " AWS. *Partial*: the table says what is missing. *Absent*: the answer is an error that"
            " names the operation and this page. A test calls every operation of this page through"
            " boto3. Members that are kept without effect are [below](#members-without-effect)."
        ),
        "",
    ]
    everything = operations()
    for service in offered():
        of_it = [one for one in everything if one.service == service]
        present = [one for one in of_it if one.support != "absent"]
        absent = [one.name for one in of_it if one.support == "absent"]
        lines += [
            f"## {service}: {len(present)} of {len(of_it)} operations",
            "",
            "| operation | support |",
            "|---|---|",
            *(
                f"| {one.name} | {one.support}{': ' + one.missing if one.missing else ''} |"
                for one in present
            ),
            "",
        ]
        if absent:
            lines += [wrapped("Absent: " + ", ".join(absent) + "."), ""]
    lines += [
        "## Other services",
        "",
        wrapped(
            "All operations of all other services are absent, among them ECR, KMS, Lambda, the"
            " runtime of SageMaker's endpoints (sagemaker-runtime) and its metrics of trials"
            " (sagemaker-metrics). The answer names the operation or its path, the service by the"
            " name in the request's signature where it is another one, and this page. Services of"
            " XML over paths (Route 53, CloudFront) get the same answer in JSON, which their"
            " clients do not read."
        ),
        "",
        "## Members without effect",
        "",
        wrapped(
            "These members are kept and described. The job's log and `trainyard describe` have a"
            " line for each that a request sets."
        ),
        "",
        "| of | member | instead |",
        "|---|---|---|",
    ]
    for of_what, path in NO_EFFECT.items():
        lines += [
            f"| {of_what} | {member} | {instead} |"
            for member, instead in members_without_effect(path)
        ]
    return "\n".join(lines) + "\n"


def main() -> int:
    text = page()
    if "--check" not in sys.argv[1:]:
        with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    if not os.path.exists(os.path.join(ROOT, PAGE)) or read(PAGE) != text:
        print(f"{PAGE} is out of date: run docs/internals/write_compatibility.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
