"""AWS's names, ARNs, error prefixes and status texts stand in the modules that speak for AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.tidy import sources
from tests.tidy.test_language import is_test

# batch: Batch's resources. contract: what a training job stores or shows. policy: IAM documents,
# which consist of ARNs.
MODULES = {"batch", "contract", "policy"}
TEXTS = re.compile(
    r'"(?:arn:aws|/aws/|(?:Algorithm|Client|InternalServer|CannotPullContainer|'
    r"CannotStartContainer)Error|(?:\w+ )?[A-Z]\w+Exception\b|"
    r'TrainingJobName"|'
    r'(?:InProgress|Completed|Failed|Stopping|Stopped|RUNNABLE|STARTING|SUCCEEDED|FAILED)")'
)
EXEMPTIONS = {
    "src/control_plane/campaign/region.cpp": "a client that reads the answers of AWS's APIs",
    "src/control_plane/launch/kubernetes/kubernetes.hpp": "Kubernetes' own word for Jobs and pods",
    "src/foundation/domain/job_state.cpp": "the stored texts of a job's phases",
    "src/foundation/domain/job_time.cpp": "the names of uses of time in Trainyard's own API",
    "src/job/entry/frames.cpp": "names of entry's own messages",
}


def speaks_for_aws(path: str) -> bool:
    return path.startswith("src/api/") or sources.module_of(path) in MODULES


def found_in(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if found := TEXTS.search(
            line.split("//", 1)[0] if '"' not in line.split("//")[0] else line
        ):
            yield number, found[0]


def sources_to_read() -> list[str]:
    return [
        path
        for path in sources.cpp()
        if path.startswith(("src/", "apps/")) and not speaks_for_aws(path) and not is_test(path)
    ]


def test_texts_are_recognised() -> None:
    for text in (
        '"arn:aws:ecs:" + region',
        '"ClientError: "',
        '"SUCCEEDED"',
        '"ThrottlingException"',
        'dimensions["TrainingJobName"]',
    ):
        assert list(found_in(text)), text
    for text in ('"ncclCommGetAsyncError"', '// "AlgorithmError: .."', '"the job failed"'):
        assert not list(found_in(text)), text


def test_texts_of_aws_stand_in_the_modules_that_speak_for_it() -> None:
    wrong = [
        f"{path}:{number}: {text}"
        for path in sources_to_read()
        if path not in EXEMPTIONS
        for number, text in found_in(sources.read(path))
    ]
    assert not wrong, "move them to contract/aws_texts.hpp, batch or api:\n" + "\n".join(wrong)


def test_exemptions_are_needed() -> None:
    for path, reason in EXEMPTIONS.items():
        assert reason and list(found_in(sources.read(path))), f"{path} needs no exemption"
