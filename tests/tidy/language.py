"""The words that are not used, with the terms that replace them (docs/glossary.md), the contexts in
which each is banned, and exemptions with their reasons. Read by test_language.py, which tells the
contexts, and by packaging/git-hooks/commit-msg."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator

EVERYWHERE = ("prose", "comments", "messages")
CODE = ("comments", "messages")
NAMES = (*EVERYWHERE, "names")
NAMES_OF_CPP = ("names", "cpp_names", "types")


@dataclasses.dataclass(frozen=True)
class Rule:
    words: str  # a regular expression for whole words, in any case
    use: str
    contexts: tuple = EVERYWHERE
    within: tuple = ()  # prefixes of paths; (): every file


@dataclasses.dataclass(frozen=True)
class Exemption:
    path: str
    word: str
    reason: str


RULES = (
    # Terms of the glossary.
    Rule(r"rooms?", "module; free capacity", NAMES),
    Rule(r"(?<!hugging )faces?", "API, front end, interface", NAMES),
    Rule(r"doors?", "listener, interface", NAMES),
    Rule(r"visitors?", "connection"),
    Rule(r"yards?", "cluster, simulated cluster, resource catalog", NAMES),
    Rule(r"nouns?", "resource, type", NAMES),
    Rule(r"keepers?", "parameter server, namespace holder, container init or watcher", NAMES),
    Rule(r"enclosures?", "rootless sandbox", NAMES),
    Rule(r"bells?", "notifier", NAMES),
    Rule(r"strangers?", "unauthenticated peer", NAMES),
    Rule(r"strays?", "orphan", NAMES),
    Rule(r"patience|silence", "timeout, deadline", NAMES),
    Rule(r"meetings?", "rendezvous, bootstrap; averaging round", NAMES),
    Rule(r"councils?", "membership group, leader election", NAMES),
    Rule(r"conductors?", "coordinator", NAMES),
    Rule(r"fittings?", "container options", NAMES),
    Rule(r"sayings?", "job log", NAMES),
    Rule(r"seats?|seated", "slot"),
    Rule(r"passer", "forwarder, proxy", NAMES),
    Rule(r"handing over|handed over to (?:the|another) job", "host reuse"),
    Rule(r"troubles?", "last error", NAMES),
    Rule(r"victims?", "interrupted host", NAMES),
    Rule(r"mirror(?:s|ing)?", "checkpoint sync"),
    Rule(r"folds?|folded|folding", "reduce"),
    Rule(
        r"(?:is|are|was|were|be) lent",
        "lend (as a verb of quota shares: lend capacity), send",
        CODE,
    ),
    Rule(r"promises?|promised", "reservation; guarantee"),
    Rule(r"giv(?:e|es|ing|en) way|gave way", "preempt"),
    Rule(r"tak(?:e|es|en|ing) back|took back", "reclaim"),
    Rule(r"awaits?|awaited|awaiting", "depends on", ("prose", "messages")),
    Rule(r"ways? out|outwards?", "egress", NAMES),
    Rule(r"(?:its|a|each|one|per|whose) turns?", "iteration, tick; position in the queue"),
    # adopt: a launcher adopts the processes of an earlier server, as Kubernetes adopts orphans;
    # `trainyard ledger adopt` is a command of users.
    Rule(
        r"adopts?|adopted|adopting|adoption",
        "register in place; restore; caught up",
        (*CODE, "names"),
        ("src/compute/", "sdk/python/c10d/"),
    ),
    # withdraw: of quotas only, which are lent.
    Rule(r"withdraws?|withdrawn|withdrew|withdrawals?", "cancel", (*CODE, "cpp_names")),
    Rule(r"asks?|asked|asking", "request, query", ("cpp_names",)),
    Rule(r"turns?", "iteration, tick; position in the queue", ("cpp_names",)),
    Rule(r"seats?|seated|sayings?", "slot; job log", ("cpp_names",)),
    Rule(r"last words|own words", "message", ("cpp_names",)),
    Rule(r"regions", "local SGD (a member of a group is a region)", ("types",), ("src/compute/",)),
    # Classes: what they do, or the entity; a whole word of daily use names none.
    Rule(r"waiting", "pending command, waiting job, pending tensor", ("types",)),
    Rule(r"deciding|choosing|explaining", "reconciler, planner, explainer", ("types",)),
    Rule(r"planning", "planner", ("types",)),
    Rule(r"applying", "command applier", ("types",)),
    Rule(r"group", "commit batch", ("types",), ("src/control_plane/control/",)),
    Rule(r"kept", "held message, digests, record", ("types",)),
    Rule(r"ways?", "link kind, direction", ("types",)),
    Rule(r"asked", "request", ("types",)),
    Rule(r"place|site|letter", "position; host layout; doc comment", ("types",)),
    Rule(r"line", "queue", ("types",), ("src/control_plane/schedule/", "src/control_plane/batch/")),
    # The simulated world of a test or of sim is its own term: elsewhere it is a context.
    Rule(r"world", "step context, dependencies", ("types",), ("src/job/",)),
    # Threads, ranks, requests and jobs are not persons.
    Rule(r"whoever|whomever", "the caller, a peer, each job that", NAMES),
    Rule(r"some(?:body|one)|any(?:body|one)", "a user, a peer, a caller", NAMES),
    Rule(r"nobody|no one", "no caller, no peer, unused", NAMES),
    Rule(r"told", "reported, configured, requested", ("names",)),
    Rule(r"typists?", "client", ("names",)),
    Rule(r"(?:jobs?|ranks?|threads?|requests?|hosts?|agents?|processes|those) who", "that"),
    Rule(r"who waits|who asks|who is behind", "waiting jobs, the caller, later jobs"),
    Rule(r"ask(?:s|ed|ing)?", "requests, queries"),
    # Archaisms.
    Rule(r"anew|afresh", "again", NAMES),
    Rule(r"so many|for so long", "N, this number of, within this time"),
    Rule(r"seldom", "rarely", NAMES),
    Rule(r"mend(?:s|ed|ing)?", "fix, correct, repair", NAMES),
    Rule(r"for ever", "forever", NAMES),
    Rule(r"beside", "next to, in addition to", NAMES),
    Rule(r"anyhow", "in any case", NAMES),
    Rule(r"any more", "no longer"),
    Rule(r"(?:the|its|their) present (?!in|and|or|only)\w+", "current"),
    Rule(r"in (?:the words of|\w+(?:'s|') words)", "with the text of, message of"),
    Rule(r"(?:go|goes|went|gone) on", "keeps running, continues", NAMES),
    Rule(r"but for", "except for"),
    Rule(r"reckon(?:s|ed|ing)?", "compute, count", NAMES),
    Rule(r"else possible", "alternatives considered"),
    Rule(r"(?:refused|told|said|says|answered) in words", "rejected with an explanation"),
    # "A lost lease is not an error", rather than "is no error". "There is no X" is fine.
    Rule(
        r"(?<!there )(?:is|are|was|were) no "
        r"(?!longer|later|earlier|more|less|fewer|larger|smaller|greater|higher|lower|wider)\w+",
        "is not a X",
        ("prose", "comments", "names"),
    ),
    # "The exit code is that of the rank": "The exit code is the rank's."
    Rule(r"(?:is|are|was|were) (?:that|those) of", "repeat the word, or 'comes from'", NAMES),
    Rule(r"(?:not|with|from|than) (?:that|those) of", "repeat the word", ("messages",)),
    # Errors: "unknown X", "invalid X: ..", "X not found".
    Rule(r"is (?:no(?! longer)|none of) \w+", "unknown X, invalid X, X not found", ("messages",)),
    Rule(r"there (?:is|are) no", "X not found, unknown X", ("messages",)),
    # What people read on a terminal, in a FailureReason or in a pending reason.
    Rule(r"is too much", "unexpected argument 'X'", ("messages",)),
    Rule(r"the API's words|in words", "raw API response; as text", ("messages",)),
    Rule(r"not to be had", "not available", ("messages",)),
    Rule(r"(?:is|are|was|were) (?:gone|away)", "exited, lost X, not connected", ("messages",)),
    Rule(r"is still needed", "rank N exited during X", ("messages",)),
    Rule(r"was hit", "exceeded its N GiB memory limit", ("messages",)),
    Rule(r"came where", "is out of order: expected N", ("messages",)),
    Rule(r"for want of", "since X is unknown, without X", ("messages",)),
    Rule(r"took over|taken over", "reloaded", ("messages",)),
    Rule(r"tried again", "retried", ("messages",)),
    Rule(r"makes no sense|means nothing", "has no effect, needs X", ("messages",)),
    Rule(r"(?:only|those) who", "the client, users that", ("messages",)),
)

EXEMPTIONS = (
    Exemption("HACKING.md", "nouns", "the part of speech"),
    Exemption("docs/formats/ledger.md", "noun", "the stored name of a command"),
    Exemption("docs/formats/ledger.md", "nouns", "the stored name of a table"),
    Exemption("src/control_plane/ledger/sql_query.hpp", "nouns", "the stored name of a table"),
    Exemption(
        "src/control_plane/ledger/on_postgres/set_aside.cpp", "nouns", "the stored name of a table"
    ),
    Exemption(
        "src/control_plane/ledger/on_postgres/writes.cpp", "nouns", "the stored name of a table"
    ),
    Exemption("src/control_plane/ledger/set_aside.cpp", "nouns", "the stored name of a table"),
    Exemption("src/control_plane/ledger/sqlite_ledger.cpp", "nouns", "the stored name of a table"),
    Exemption("docs/decisions/05-user-namespaces.md", "nobody", "the POSIX user"),
    Exemption("docs/operating/batch-containers.md", "nobody", "the POSIX user"),
    Exemption("src/api/trainyard_api/campaigns.cpp", "trouble", "a member of the API's answer"),
    Exemption("src/compute/boosting/training/folds.hpp", "fold", "of a cross validation"),
    Exemption("src/compute/boosting/training/folds.hpp", "folds", "of a cross validation"),
    Exemption("src/compute/boosting/training/cross_validation.hpp", "fold", "its part of the rows"),
    Exemption(
        "src/compute/boosting/training/cross_validation.hpp", "folds", "its parts of the rows"
    ),
    Exemption(
        "src/compute/boosting/training/cross_validation.cpp", "folds", "its parts of the rows"
    ),
    *(
        Exemption(f"tests/{path}", "victim", "the attacked job")
        for path in (
            *("hostile/keys.py", "hostile/machine.py", "hostile/pages.py", "hostile/world.py"),
            "system/test_tenants.py",
        )
    ),
    *(
        Exemption(f"tests/{path}", "nobody", "a name that does not exist")
        for path in (
            *("hostile/keys.py", "system/test_administration.py", "system/test_campaign.py"),
            "system/test_channels.py",
        )
    ),
    *(
        Exemption(path, "yard", "a name of a bucket or a database's user")
        for path in (
            "tests/journeys/newcomer/test_first_hour.py",
            "tests/journeys/test_readme.py",
            "tests/system/test_catalogue.py",
        )
    ),
    Exemption("tests/tidy/test_commits.py", "mend", "in subjects that are refused"),
    Exemption("tests/tidy/test_commits.py", "yard", "in a subject: the module"),
    Exemption("bench/names.py", "yard", "the program, ./yard"),
    Exemption("tests/tidy/test_yard.py", "yard", "the program, ./yard"),
    Exemption("yard", "yard", "the name of the program"),
    Exemption("tests/console/test_console.py", "await", "of JavaScript"),
    Exemption("tests/system/test_agent.py", "fold", "the program that wraps lines"),
    Exemption("tests/system/test_interruptions.py", "victim", "a name in the stored results"),
    Exemption("sdk/python/c10d/channels.cpp", "adopt", "std::adopt_lock"),
    Exemption("src/compute/capi/trainyard_local_sgd.h", "adopted", "a member that programs read"),
    Exemption("src/foundation/client/forward.cpp", "nobody", "an option of libcurl"),
    Exemption("src/foundation/objects/s3_client/connection.cpp", "nobody", "an option of libcurl"),
)

# A doc comment opens with a subject and a verb: "Decides which waiting jobs start now."

# Whole words: not parts of identifiers, paths or calls.
WORD = r"(?<![\w./:$@-])(?:%s)(?![\w/(]|::|\.\w|-\w)"


@functools.cache
def patterns(context: str) -> tuple[re.Pattern[str], list[tuple[re.Pattern[str], Rule]]]:
    """The pattern of all rules of a context, and that of each."""
    word = r"^(?:%s)$" if context == "types" else WORD
    rules = [rule for rule in RULES if context in rule.contexts]
    return (
        re.compile(word % "|".join(rule.words for rule in rules), re.I),
        [(re.compile(word % rule.words, re.I), rule) for rule in rules],
    )


def banned_in(text: str, context: str, path: str = "") -> Iterator[tuple[str, str]]:
    """(word in lower case, term to use) of each banned word."""
    any_rule, rules = patterns(context)
    if not any_rule.search(text):
        return
    for pattern, rule in rules:
        if path.startswith(rule.within or ""):
            for found in pattern.finditer(text):
                yield found[0].lower(), rule.use
