"""Error texts say what was being done, which field and value was wrong, and what to do. A caller
adds the first part as the error climbs (Error::in), so a test can refuse only texts that cannot
become such a message: those with fewer than four words and no value, those that only judge ("bad
magic", "Invalid"), those that shout, and those of an exceeded limit (exhausted) without a number.

Reads what is handed to the functions that make an Error or a Failure of a `message`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tests.tidy import sources
from tests.tidy.test_language import is_test

# A function that makes an error, with its parameters: Error invalid(std::string message, ..)
MAKER = re.compile(r"\b(?:Error|Failure) (\w+)\(([^();]*\bmessage\b[^();]*)\)")
STRING = r'"(?:[^"\\\n]|\\.)*"'
TOKEN = re.compile(
    rf'R"(\w*)\(.*?\)\1"|{STRING}|'
    r"'(?:[^'\\\n]|\\.)'|//[^\n]*|/\*.*?\*/|[(){}\[\],]",
    re.S,
)
LITERAL = rf"{STRING}(?:\s*{STRING})*"
CHOICE = re.compile(rf'[^"]*\?\s*({LITERAL})\s*:\s*({LITERAL})', re.S)  # one of two texts

WORDS_MIN = 4  # of a text without a value
CALL_WORDS_MIN = 2  # of from_errno: "opening a socket"; the text of errno follows
# They are for the code that has cancelled, or are bugs to report: a user can do nothing else.
OF_THE_PROGRAM = {"cancelled", "internal"}
# They put their argument into a longer text.
COMPLETED = {
    "sns_invalid": 'adds "Invalid parameter: ", as AWS does',
    "no_such_resource": "adds the name of the resource",
}
# A limit has a number, except that of the system's memory.
LIMIT = re.compile(r"\d|\bmemory\b")
REQUIRED = re.compile(r"[A-Z]?[\w.]+ is required")  # names the field, and what to do
JUDGEMENT = re.compile(
    r"(?:errors?|fail(?:ed|ures?)|invalid|unknown|unexpected)[.:]?"  # and nothing else
    r"|(?:.*: )?(?:an? )?(?:bad|wrong|illegal|incorrect|improper|unexpected)(?: \w+){1,2}\.?",
    re.I,
)

# Texts of AWS, which its clients and their users know.
AWS_TEXTS = {
    "Access Denied": "S3's",
    "Detail is malformed.": "of EventBridge",
    "Invalid Access-Control-Request-Method: null": "S3's, of a preflight request",
    "Invalid token": "SNS'",
    "Object already exists": "of Batch",
    "Request has expired": "S3's, of a presigned URL",
    "Resource limit exceeded.": "of CloudWatch Logs",
    "Unknown": "of CloudWatch, of an alarm that does not exist",
}


def is_shipped(path: str) -> bool:
    return path.startswith(("src/", "apps/", "sdk/")) and not is_test(path)


def makers_in(code: str) -> Iterator[tuple[str, int]]:
    """(name, position of its message) of each function that makes an error."""
    for name, parameters in MAKER.findall(code):
        of_message = [each.endswith(" message") for each in parameters.split(",")]
        if True in of_message:
            yield name, of_message.index(True)


def arguments(text: str, start: int) -> list[str]:
    """The arguments of a call, without comments. `start`: behind its opening parenthesis."""
    found, depth, argument, at = [], 0, "", start
    for token in TOKEN.finditer(text, start):
        argument += text[at : token.start()]
        at = token.end()
        if depth == 0 and token[0] in ("]", "}", ")"):
            break
        if depth == 0 and token[0] == ",":
            found.append(argument.strip())
            argument = ""
            continue
        depth += (token[0] in ("(", "[", "{")) - (token[0] in (")", "]", "}"))
        argument += "" if token[0].startswith(("//", "/*")) else token[0]
    return [*found, argument.strip()]


def joined(literal: str) -> str:
    """ "adjacent " "literals" -> adjacent literals"""
    return "".join(part[1:-1] for part in re.findall(STRING, literal))


def texts_without_value(argument: str) -> list[str]:
    """The texts of a message that inserts nothing: one, or two of which it takes one."""
    if re.fullmatch(LITERAL, argument):
        return [joined(argument)]
    choice = CHOICE.fullmatch(argument)
    return [joined(choice[1]), joined(choice[2])] if choice else []


def faults_of(maker: str, message: str) -> Iterator[str]:
    for text in texts_without_value(message):
        if not text or maker in OF_THE_PROGRAM or REQUIRED.fullmatch(text):
            continue  # an empty text is a signal within a module, which nothing shows
        words_min = CALL_WORDS_MIN if maker == "from_errno" else WORDS_MIN
        if len(text.split()) < words_min:
            yield f"'{text}' has fewer than {words_min} words and no value"
        elif JUDGEMENT.fullmatch(text):
            yield f"'{text}' only judges"
        if maker == "exhausted" and not LIMIT.search(text):
            yield f"'{text}' has no number, which tells how much is allowed"
    if message.endswith('!"'):
        yield "shouts"


def faults_in(text: str, makers: Mapping[str, int]) -> Iterator[tuple[int, str]]:
    """(line number, fault) of each message in a file."""
    for found in re.finditer(rf"(?<![\w.>])({'|'.join(makers)})\(", text):
        begin = text.rfind("\n", 0, found.start()) + 1
        if "//" in text[begin : found.start()]:
            continue  # an example in a comment
        given = arguments(text, found.end())
        if len(given) > makers[found[1]]:
            for fault in faults_of(found[1], given[makers[found[1]]]):
                yield text.count("\n", 0, found.start()) + 1, fault


def all_makers() -> dict[str, int]:
    """Returns the makers of all sources, with the positions of their messages."""
    return {
        name: position
        for path in sources.cpp()
        if is_shipped(path)
        for name, position in makers_in(sources.code(path))
    }


def text_of_aws(fault: str) -> str:
    """The text of AWS in which a fault was found; "": it is of ours."""
    return next((text for text in AWS_TEXTS if fault.startswith(f"'{text}' ")), "")


def test_texts_can_have_three_parts() -> None:
    makers = {name: at for name, at in all_makers().items() if name not in COMPLETED}
    used, wrong = set(), []
    for path in sources.cpp():
        if is_shipped(path):
            for line, fault in faults_in(sources.read(path), makers):
                used.add(text_of_aws(fault))
                if not text_of_aws(fault):
                    wrong.append(f"{path}:{line}: {fault}")
    assert not wrong, (
        "say what was being done, which field and value was wrong, and what is valid:\n"
        + "\n".join(wrong)
    )
    unused = sorted(AWS_TEXTS.keys() - used)
    assert not unused, f"remove from AWS_TEXTS: {unused}"


def test_functions_that_make_errors_are_found() -> None:
    makers = all_makers()
    for name in ("invalid", "denied", "not_found", "conflict", "exhausted", "unavailable"):
        assert makers[name] == 0, name
    for name, position in (
        ("corrupt", 0),
        ("from_errno", 0),
        ("s3_failure", 2),
        ("ec2_failure", 1),
    ):
        assert makers[name] == position, name
    assert makers.keys() >= COMPLETED.keys(), "remove what no longer exists"


def faults_of_one(text: str) -> list[str]:
    makers = {"invalid": 0, "exhausted": 0, "cancelled": 0, "from_errno": 0, "s3_failure": 2}
    return [fault for _, fault in faults_in(text, makers)]


def test_planted_texts_are_found() -> None:
    for text, fault in (
        ('return invalid("malformed order");', "'malformed order' has fewer than 4 words"),
        ('invalid("a number "\n    "missing", Fault::x)', "'a number missing' has fewer"),
        ('invalid(empty ? "no rows" : "a row has no label")', "'no rows' has fewer"),
        ('s3_failure(400, "BadDigest", "Bad digest")', "'Bad digest' has fewer"),
        ('from_errno("poll")', "'poll' has fewer than 2 words"),
        ('invalid("segment header: wrong checksum")', "only judges"),
        ('invalid("pin of the cache: bad magic number.")', "only judges"),
        ('invalid("Failed")', "'Failed' has fewer"),
        ('invalid("the job " + name + " does not run!")', "shouts"),
        ('exhausted("there are too many files here")', "has no number"),
        ('invalid(/* of the file */ "no rows")', "'no rows' has fewer"),
    ):
        found = faults_of_one(text)
        assert len(found) == 1 and fault in found[0], (text, found)


def test_texts_with_three_parts_pass() -> None:
    for text in (
        'invalid("reading the config " + path + ": no table")',
        'invalid("unknown statistic \'" + shorten(text, 60) + "\'")',
        'invalid("the label is not a number")',
        'invalid(given ? name + " is too long" : "no name")',
        'invalid("StorageCapacity is required")',
        'exhausted("at most 8 files are allowed")',
        'exhausted("the directory has more than " + std::to_string(max) + " files")',
        'exhausted("starting libcurl: out of memory")',
        'invalid("")',
        "invalid(format(\"a, b\", ')'))",
        'cancelled("interrupted")',
        'from_errno("opening a socket")',
        's3_failure(400, "BadDigest", "The digest does not match the body.")',
        'layout.invalid("no")',
        '// corrupt: invalid("no")',
    ):
        assert not faults_of_one(text), text
