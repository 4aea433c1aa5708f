"""Messages are for people: a caller that must tell two cases apart reads a typed detail or a kind,
never a text of ours. Texts of other programs may be parsed where those give nothing else."""

import re

from tests.tidy import sources

# A search in a message, reason or failure, or a comparison of one with a text.
PARSED = re.compile(
    r"\b(?:message|reason|failure)(?:\(\))?\.(?:find|rfind|starts_with|ends_with|contains)\("
    r'|\b(?:message|reason|failure)(?:\(\))? [!=]= (?:"[^"]|k[A-Z])'
)
TEST = re.compile(r"_(?:test|fuzz|bench)\.cpp$|/testing/")

# file -> whose texts it parses, and why
ALLOWED = {
    # of other programs, which have no code for the case
    "src/compute/boosting/failures.cpp": "of XGBoost: SageMaker's list of customer errors",
    "src/compute/boosting/library/library_call.cpp": "of XGBoost: without file, line and stack",
    "src/control_plane/launch/kubernetes/answers.cpp": "of kube-apiserver: an exceeded quota",
    "src/control_plane/launch/slurm/answers.cpp": "of slurmctld and its commands",
    "src/control_plane/launch/slurm/slurm_states.cpp": "of slurmctld: a reason None is none",
    "src/foundation/client/client.cpp": "of AWS: DynamoDB's not found has no code of its own",
    "src/machine/containers/image_source.cpp": "of skopeo and registries",
    "src/machine/networks/firewall.cpp": "of nft: missing rights have no exit status",
    "src/job/agent/driver_failure.cpp": "of the SDK's driver in a container",
    # of users
    "src/api/prometheus/write.cpp": "of a request: the parameter of its content type",
    "src/control_plane/observe/field_pattern.cpp": "of users: log events",
    # texts that the ledger stores, in the form that AWS defines
    "src/api/operations/listed_failure.cpp": "of AWS's form: a FailureReason as lists shorten it",
    "src/control_plane/batch/status.cpp": "of AWS's form: OutOfMemoryError begins a container's"
    " reason",
    # nothing is decided by it
    "src/machine/containers/image.cpp": "replaces a path in a text",
    "src/api/cli/job_view.cpp": "the first line of a text",
    "src/foundation/domain/status_message.cpp": "joins and splits texts, in one place",
}


def parsed(path: str) -> list[tuple[int, str]]:
    return [
        (number, line.strip())
        for number, line in enumerate(sources.read(path).splitlines(), 1)
        if PARSED.search(line.split("//", 1)[0])
    ]


def test_our_own_messages_are_not_parsed() -> None:
    wrong, used = [], set()
    for path in sources.cpp():
        if not path.startswith(("src/", "apps/", "sdk/")) or TEST.search(path):
            continue
        for number, line in parsed(path):
            used.add(path)
            if path not in ALLOWED:
                wrong.append(f"{path}:{number}: use a kind or a typed detail: {line}")
    wrong += [f"{path}: remove the exception" for path in ALLOWED.keys() - used]
    assert not wrong, "\n" + "\n".join(wrong)


def test_searches_are_found() -> None:
    for line in ('if (error.message.find("x") != npos)', 'if (why.error().message == "x")'):
        assert PARSED.search(line), line
    for line in ("message = find(x)", "if (message == job.failure_reason)", 'reason == ""'):
        assert not PARSED.search(line), line
