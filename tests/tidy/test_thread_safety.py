"""A mutex is one that clang knows, and says what it guards (base/thread_safety.hpp)."""

import re

from tests.tidy import sources

HEADER = "src/foundation/base/thread_safety.hpp"
STANDARD = re.compile(
    r"std::(?:recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex\b"
    r"|std::(?:lock_guard|scoped_lock|unique_lock|shared_lock|condition_variable(?:_any)?)\b"
)
DECLARATION = re.compile(r"^\s*(?:mutable |static )*(?:Shared)?Mutex (\w+);", re.M)

# Mutexes that guard no member: file, name -> reason.
GUARDS_NO_MEMBER: dict[tuple[str, str], str] = {
    ("src/foundation/base/log.cpp", "one_line_at_a_time"): "orders the calls of the sink",
    ("src/foundation/objects/directory/named_locks.hpp", "mutex"): "is what callers hold",
    ("src/api/operations/identity_store.hpp", "changing_"): "held by one change() at a time",
    ("src/api/ec2/network_store.hpp", "changing_"): "held by one change() at a time",
    (
        "src/control_plane/file_systems/store.hpp",
        "changing_",
    ): "held by one change() at a time",
    (
        "src/control_plane/notify/notifications.hpp",
        "changing_",
    ): "held by one change() at a time",
    ("src/control_plane/alarms/store.hpp", "changing_"): "held by one change() at a time",
    ("src/control_plane/insights/insight_rules.hpp", "changing_"): "held by one change at a time",
    (
        "src/control_plane/log_routing/delivery_catalogue.hpp",
        "changing_",
    ): "held by one change at a time",
    (
        "src/control_plane/log_routing/destinations.hpp",
        "changing_",
    ): "held by one change at a time",
    ("src/control_plane/log_routing/deliveries.hpp", "reloading_"): "held by one reload at a time",
    ("src/control_plane/log_routing/router.hpp", "reloading_"): "held by one reload at a time",
    ("src/api/fsx/testing/fsx_world.hpp", "mutex_"): "orders the calls of the base",
    ("src/control_plane/control/explainer.hpp", "alone_"): "held by one explanation at a time",
    ("src/job/data/stop.hpp", "mutex_"): "orders the writes of an atomic with its waits",
    ("src/foundation/os/parallel.cpp", "mutex"): "a local variable",
    ("src/job/agent/steps.cpp", "mutex"): "a wait that nothing ends early",
}
# Files that use the standard's types: reason.
STANDARD_TYPES: dict[str, str] = {
    "src/compute/collectives/testing/programs/nccl_in_memory.cpp": "a library that stands in for"
    " libnccl and links nothing of ours",
}
# Members whose mutex cannot be named where they are declared: file, comment -> reason.
NOT_ANNOTATED: dict[tuple[str, str], str] = {
    (
        "src/foundation/objects/directory/named_locks.hpp",
        "guarded by NamedLocks::mutex_",
    ): "a member of the enclosing object",
    (
        "src/control_plane/gateway/agent_session.hpp",
        "guarded by the server's mutex_",
    ): "a member of the object that owns the sessions",
    (
        "sdk/python/c10d/channels.hpp",
        "Guarded by the mutex",
    ): "a member of the object that owns the channels",
    (
        "sdk/python/c10d/worker.hpp",
        "guarded by the worker's mutex",
    ): "a member of the object that owns the tasks",
    (
        "src/compute/collectives/testing/programs/nccl_in_memory.cpp",
        "guarded by rendezvous_mutex",
    ): "as above",
    (
        "src/compute/collectives/testing/programs/nccl_in_memory.cpp",
        "guarded by its mutex",
    ): "as above",
}


def ours() -> list[str]:
    return [path for path in sources.cpp() if path.startswith(("src/", "apps/", "sim/", "sdk/"))]


def test_mutexes_are_annotated_types() -> None:
    wrong = [
        f"{path}:{number}: {found[0]} is not checked by clang: use {HEADER}"
        for path in ours()
        if path != HEADER and path not in STANDARD_TYPES
        for number, line in enumerate(sources.code(path).splitlines(), 1)
        if (found := STANDARD.search(line))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_a_mutex_says_what_it_guards() -> None:
    wrong, used = [], set()
    for path in ours():
        if path.endswith(("_test.cpp", "_fuzz.cpp")):
            continue  # many hold a local variable
        code = sources.code(path)
        for found in DECLARATION.finditer(code):
            name = found[1]
            if re.search(rf"GUARDED_BY\((?:\w+::)?{name}\)", code):
                continue
            used.add((path, name))
            if path != HEADER and (path, name) not in GUARDS_NO_MEMBER:
                wrong.append(
                    f"{path}: {name} guards nothing: write GUARDED_BY({name}) after its members"
                )
    stale = GUARDS_NO_MEMBER.keys() - used
    wrong += [
        f"{path}: the exception for {name} is no longer needed: remove it" for path, name in stale
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_comment_stands_for_an_annotation() -> None:
    wrong, used = [], set()
    for path in ours():
        for number, line in enumerate(sources.read(path).splitlines(), 1):
            found = re.search(r"//.*?(guarded by [\w:' ]*\b(?:\w*mutex_?|mu_)\b)", line, re.I)
            if not found:
                found = re.search(r"//.*?(Requires: \w*(?:mutex_?|mu_) is held)", line)
            if not found:
                continue
            used.add((path, found[1]))
            if path != HEADER and (path, found[1]) not in NOT_ANNOTATED:
                wrong.append(
                    f"{path}:{number}: write GUARDED_BY or REQUIRES instead: {line.strip()}"
                )
    wrong += [
        f"{path}: remove the exception {text!r}" for path, text in NOT_ANNOTATED.keys() - used
    ]
    assert not wrong, "\n" + "\n".join(wrong)
