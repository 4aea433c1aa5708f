"""Plain technical English: no private words, and doc comments that open with a subject and a verb.

docs/glossary.md defines the terms. RULES (language.py) has the words that they replace,
with the contexts in which each is banned:

  prose     markdown, without code blocks, inline code and link targets: every file
  comments  // comments of C++ and TypeScript, comments of pages, comments and docstrings of Python,
            # comments of shell, CMake and lists
  messages  texts in string literals: every module outside its tests, and all Python, pages, shell
            and CMake; of pages also what stands between tags, of shell also here-documents
  names     the words of identifiers of C++ and Python, names of tests included: every file
  cpp_names the same for C++ only: terms that Python's packages need for interfaces of others
  types     the names of classes, structs, enums and aliases of C++, as a whole

The words of names of files and folders follow the rules for names.

A rule with `within` holds for the paths below: elsewhere the word is a standard term.

`python -m tests.tidy.test_language comments MODULE` lists the banned words of one module.
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence

from tests.tidy import sources
from tests.tidy.language import CODE, EXEMPTIONS, NAMES_OF_CPP, WORD, banned_in

OPENINGS = re.compile(r"(?:What|Who|Whom|Whose|Whoever|Which|Whether|Of|Those)\b")
OWN = ("tests/tidy/language.py", "tests/tidy/test_language.py")  # they name the words
PACKAGES = "sdk/python/"  # what users of the packages read


def prose(path: str) -> Iterator[tuple[int, str]]:
    """(line number, text) of the sentences of a markdown file."""
    # code: an indented line here is code, not the continuation of a paragraph
    fenced = False
    code = True
    for number, line in enumerate(sources.read(path).splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not line.strip():
            code = True
        elif not fenced and not (code and line.startswith("    ")):
            code = False
            yield number, re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "``", line))


def lines_of(text: str) -> Iterable[tuple[int, str]]:
    return enumerate(text.splitlines(), 1)


STRINGS = r'"(?:[^"\\\n]|\\.)*"'
RAW_STRINGS = r'R"(\w*)\((.*?)\)\1"'


HASH_COMMENT = re.compile(r"(?:^|\s)#(?!!)(.*)")
HASH_SUFFIXES = (".txt", ".cmake", ".toml", ".yaml", ".yml", ".conf", ".ini")
HERE_DOCUMENTS = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n\s*\1$", re.S | re.M)
TEXTS = r"'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|" + STRINGS  # of TypeScript and of shell


def program_of(path: str) -> str:
    """The interpreter that the first line of a script names; "" of another file."""
    found = re.match(r"#!.*?(python|bash|sh)", sources.read(path)) if is_script(path) else None
    return found[1] if found else ""


def is_script(path: str) -> bool:
    return "." not in os.path.basename(path) and os.access(
        os.path.join(sources.ROOT, path), os.X_OK
    )


def is_python(path: str) -> bool:
    return path.endswith(".py") or program_of(path) == "python"


def is_shell(path: str) -> bool:
    return path.endswith(".sh") or program_of(path) in ("bash", "sh")


def is_page(path: str) -> bool:
    return path.endswith((".ts", ".svelte"))


def has_hash_comments(path: str) -> bool:
    """Shell, CMake and lists, without what programs print."""
    return is_shell(path) or (
        path.endswith(HASH_SUFFIXES) and not re.search(r"corpus/|golden/|testdata/|expected_", path)
    )


def hash_comments(path: str) -> Iterator[tuple[int, str]]:
    for number, line in lines_of(sources.read(path)):
        if found := HASH_COMMENT.search(line):
            yield number, found[1]


def texts_between_tags(path: str) -> Iterator[tuple[int, str]]:
    """(line number, line) of a page, without scripts, styles and comments."""
    text = re.sub(
        r"<(script|style)\b.*?</\1>|<!--.*?-->",
        lambda found: "\n" * found[0].count("\n"),
        sources.read(path),
        flags=re.S,
    )
    yield from lines_of(text)


def quoted(text: str) -> Iterator[tuple[int, str]]:
    """(line number, literal) of the literals that hold more than one word, without // comments."""
    text = re.sub(r"(?m)(?:^|(?<=[ \t]))//.*$", "", text)
    for found in re.finditer(TEXTS, text):
        if " " in found[0].strip("'\"` "):
            yield text.count("\n", 0, found.start()) + 1, found[0][1:-1]


def page_messages(path: str) -> Iterator[tuple[int, str]]:
    """(line number, text) of what a page shows."""
    if path.endswith(".svelte"):
        yield from texts_between_tags(path)
    yield from quoted(sources.read(path))


def shell_messages(path: str) -> Iterator[tuple[int, str]]:
    """(line number, text) of the literals and the here-documents of a script, or of a file of
    CMake."""
    text = sources.read(path)
    for found in HERE_DOCUMENTS.finditer(text):
        first = text.count("\n", 0, found.start(2))
        yield from ((first + number, line) for number, line in lines_of(found[2]))
    for number, line in lines_of(HERE_DOCUMENTS.sub("", text)):
        for literal in re.findall(TEXTS, HASH_COMMENT.sub("", line)):
            if " " in literal.strip("'\" "):
                yield number, literal[1:-1]


def python_comments(path: str) -> Iterator[tuple[int, str]]:
    """(line number, text) of the comments and docstrings of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(sources.read(path)).readline):
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and token.string.startswith('"""')
        ):
            yield from enumerate(token.string.splitlines(), token.start[0])


def comments(path: str) -> Iterator[tuple[int, str]]:
    """(line number, text) of the comments of a Python file, or of the // comments of another file;
    of a page also of its <!-- --> comments."""
    if is_python(path):
        yield from python_comments(path)
        return
    if has_hash_comments(path):
        yield from hash_comments(path)
        return
    if path.endswith(".svelte"):
        for found in re.finditer(r"<!--(.*?)-->", sources.read(path), re.S):
            first = sources.read(path)[: found.start()].count("\n")
            yield from ((first + number, line) for number, line in lines_of(found[1]))
    text = re.sub(
        RAW_STRINGS,
        lambda found: '""' + "\n" * found[0].count("\n"),
        sources.read(path),
        flags=re.S,
    )
    for number, line in lines_of(re.sub(STRINGS, '""', text)):
        if "//" in line:
            yield number, line.split("//", 1)[1]


def python_messages(path: str) -> Iterator[tuple[int, str]]:
    """(line number, text) of the string literals of a Python file, without docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(sources.read(path)).readline):
        if token.type != tokenize.STRING or token.string.lstrip("rRbBfFuU").startswith('"""'):
            continue
        if " " in token.string.strip("\"' "):
            yield token.start[0], token.string.lstrip("rRbBfFuU")[1:-1]


def messages(path: str) -> Iterator[tuple[int, str]]:
    """(line number, text) of the string literals of a file that hold more than one word."""
    if is_python(path):
        yield from python_messages(path)
        return
    if is_page(path):
        yield from page_messages(path)
        return
    if has_hash_comments(path):
        yield from shell_messages(path)
        return
    text = re.sub(
        RAW_STRINGS,
        lambda found: '""' + "\n" * found[0].count("\n"),
        sources.read(path),
        flags=re.S,
    )
    text = re.sub(r"^\s*#include.*$", "", text, flags=re.M)
    for number, line in lines_of(text):
        for literal in re.findall(
            STRINGS, re.sub(r"//.*$", "", line) if '"' not in line.split("//", 1)[0] else line
        ):
            if " " in literal.strip('" '):
                yield number, literal[1:-1]


def words_of(identifier: str) -> str:
    """read_entry_config, ReadEntryConfig, kReadEntryConfig -> read entry config"""
    return " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)).lower()


def names(path: str) -> Iterator[tuple[int, str]]:
    """(line number, its words) of each identifier of a C++ or Python file."""
    if is_python(path):
        for token in tokenize.generate_tokens(io.StringIO(sources.read(path)).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], words_of(token.string)
        return
    for number, line in lines_of(sources.code(path)):
        if not line.startswith("#"):
            for identifier in re.findall(r"[A-Za-z_]\w*", line):
                yield number, words_of(identifier)


TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?: class)?)\s+(?:[A-Z]+\([^)]*\)\s*)?(\w+)"
    r"\s*(?:final\s*)?(?:[:{]|$)"
    r"|\busing\s+(\w+)\s*="
)


def types(path: str) -> Iterator[tuple[int, str]]:
    """(line number, words) of each type that a C++ file declares, as a sentence of its own."""
    for number, line in lines_of(sources.code(path)):
        for found in TYPE.finditer(line):
            yield number, words_of(found[1] or found[2])


def contexts_of(path: str) -> Sequence[str]:
    if path.endswith(".md"):
        return ("prose",)
    if is_page(path) or (has_hash_comments(path) and not is_python(path)):
        return CODE
    if path.endswith((".cpp", ".hpp", ".h")):
        return (*CODE, *NAMES_OF_CPP)
    return (*CODE, "names")


def banned(path: str, context: str) -> Iterator[tuple[int, str, str]]:
    """(line number, word in lower case, term to use) of each banned word, exemptions included."""
    read = {
        "prose": prose,
        "comments": comments,
        "messages": messages,
        "names": names,
        "cpp_names": names,
        "types": types,
    }[context]
    for number, text in read(path):
        for word, use in banned_in(text, context, path):
            yield number, word, use


def found_in(path: str, context: str) -> list[str]:
    """Lines for people: "path:line: 'word' (use: ..)"."""
    exempt = {each.word for each in EXEMPTIONS if each.path == path}
    return [
        f"{path}:{number}: '{word}' (use: {use})"
        for number, word, use in banned(path, context)
        if word not in exempt
    ]


def is_test(path: str) -> bool:
    return re.search(r"(_test|_fuzz|_bench)\.cpp$|/testing/", path) is not None


def paths_of(module: str, context: str) -> list[str]:
    return [
        path
        for path in sources.cpp(".cpp", ".hpp", ".h")
        if sources.module_of(path) == module and not (context == "messages" and is_test(path))
    ]


def modules() -> list[str]:
    return sorted({sources.module_of(path) for path in sources.cpp()} - {None})


def banned_in_path(path: str) -> Iterator[tuple[str, str]]:
    """(word in lower case, term to use) of each banned word in the names of a file and its
    folders."""
    for part in path.split("/"):
        yield from banned_in(words_of(part), "names", path)


def test_documents_use_the_terms_of_the_glossary() -> None:
    wrong = [each for path in sources.documents() for each in found_in(path, "prose")]
    assert not wrong, "banned words (docs/glossary.md):\n" + "\n".join(wrong)


def wrong_in(paths: Iterable[str], contexts: Iterable[str] = CODE) -> str:
    wrong = [each for path in paths for context in contexts for each in found_in(path, context)]
    return "banned words (docs/glossary.md):\n" + "\n".join(wrong) if wrong else ""


def test_python_uses_the_terms_of_the_glossary() -> None:
    # The file with the banned words is exempt.
    paths = [path for path in sources.tracked() if is_python(path) and path not in OWN]
    assert {"tests/run", "examples/01_digits/run", "tests/reach.py"} <= set(paths)
    assert not (wrong := wrong_in(paths)), wrong
    # A literal is a message, but a docstring is not.
    found = [text for path in paths if path.startswith(PACKAGES) for _, text in messages(path)]
    assert any("the hostfile has no hosts" in text for text in found)
    assert not any("Raised when this process" in text for text in found)


def test_scripts_and_lists_use_the_terms_of_the_glossary() -> None:
    paths = [path for path in sources.tracked() if has_hash_comments(path)]
    assert {"yard", ".ci/run", "modules.txt", "CMakeLists.txt", "cmake/module.cmake"} <= set(paths)
    assert not (wrong := wrong_in(paths)), wrong
    found = [text for _, text in messages("yard")]
    assert any("./yard demo      train a model" in text for text in found), "a here-document"
    assert any(text.startswith("apt-get install failed") for text in found), "a literal"
    assert any("The one command of this repository" in text for _, text in comments("yard"))


def test_pages_use_the_terms_of_the_glossary() -> None:
    paths = [path for path in sources.tracked() if is_page(path)]
    assert not (wrong := wrong_in(paths)), wrong
    found = list(messages("console/src/pages/Data.svelte"))
    lines = sources.read("console/src/pages/Data.svelte").splitlines()
    for shown in ("No buckets.", "Object not found."):
        assert any(shown in text and shown in lines[number - 1] for number, text in found), shown
    assert not any("margin:" in text for _, text in found), "styles are not shown"
    opening = [text for _, text in comments("console/src/components/Status.svelte")]
    assert opening[0].startswith(" Shows a job's status")


def test_modules_use_the_terms_of_the_glossary() -> None:
    for context in CODE:
        wrong = [
            each
            for module in modules()
            for path in paths_of(module, context)
            for each in found_in(path, context)
        ]
        assert not wrong, f"banned words in {context} (docs/glossary.md):\n" + "\n".join(wrong)


def test_names_use_the_terms_of_the_glossary() -> None:
    paths = [
        path
        for path in sources.tracked()
        if path.endswith((".cpp", ".hpp", ".h")) or is_python(path)
    ]
    wrong = [each for path in paths for each in found_in(path, "names")]
    for context in NAMES_OF_CPP[1:]:
        wrong += [
            each for path in paths if not path.endswith(".py") for each in found_in(path, context)
        ]
    assert not wrong, "banned words in names (docs/glossary.md):\n" + "\n".join(wrong)


def test_files_and_folders_use_the_terms_of_the_glossary() -> None:
    exempt = {(each.path, each.word) for each in EXEMPTIONS}
    wrong = [
        f"{path}: '{word}' (use: {use})"
        for path in sources.tracked()
        for word, use in banned_in_path(path)
        if (path, word) not in exempt
    ]
    assert not wrong, "banned words in names of files (docs/glossary.md):\n" + "\n".join(wrong)
    for name, word in (
        ("src/launch/strays.cpp", "strays"),
        ("tests/corpus/link_fuzz/silence", "silence"),
        ("src/rooms/of_plans.hpp", "rooms"),
        ("console/MeetingView.svelte", "meeting"),
    ):
        assert [found for found, _ in banned_in_path(name)] == [word], name


def test_headers_of_c_are_read() -> None:
    header = "src/compute/capi/trainyard_local_sgd.h"
    assert header in paths_of("capi", "comments") and header in paths_of("capi", "messages")
    assert any("replaced by the others" in text for _, text in comments(header))


def test_texts_are_not_named_words() -> None:
    """Only the arguments of a command are named words: not a message or a text."""
    text = re.compile(r"\b(?:std::string(?:_view)?|const char ?\*)[ &]*\bwords\b")
    wrong = [
        f"{path}:{number}: {line.strip()} (use: message, text, explanation)"
        for path in sources.cpp()
        for number, line in lines_of(sources.code(path))
        if text.search(line)
    ]
    assert not wrong, "\n" + "\n".join(wrong)
    assert text.search("Error refuse(const std::string& words)")
    assert not text.search("std::vector<std::string> words;")


def test_names_are_read_as_words() -> None:
    for identifier in ("read_entry_config", "ReadEntryConfig", "kReadEntryConfig"):
        assert words_of(identifier).removeprefix("k ") == "read entry config", identifier
    assert words_of("TRAINYARD_MEETING") == "trainyard meeting"


def test_declared_types_are_found() -> None:
    for line, name in (
        ("struct Waiting {", "Waiting"),
        ("class Deciding final : public Base {", "Deciding"),
        ("enum class Way { tcp };", "Way"),
        ("using Asked = int;", "Asked"),
    ):
        found = TYPE.search(line)
        assert found and name in (found[1], found[2]), line
    assert not TYPE.search("struct Waiting;") and not TYPE.search("using domain::Waiting;")


def test_exemptions_are_needed() -> None:
    for each in EXEMPTIONS:
        assert each.path in sources.tracked(), (
            f"an exemption names {each.path}, which does not exist"
        )
        assert each.reason, f"the exemption for '{each.word}' in {each.path} has no reason"
        found = {
            word for context in contexts_of(each.path) for _, word, _ in banned(each.path, context)
        } | {word for word, _ in banned_in_path(each.path)}
        assert each.word in found, f"{each.path} does not need the exemption for '{each.word}'"


def doc_comments(path: str) -> Iterator[tuple[int, str]]:
    """(line number, first line) of the docstrings of a Python file, or of the blocks of // comments
    of another source."""
    if is_python(path):
        for node in ast.walk(ast.parse(sources.read(path))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield node.body[0].lineno, text.splitlines()[0]
        return
    before = ""
    for number, line in lines_of(sources.read(path)):
        if line.lstrip().startswith("//") and not before.lstrip().startswith("//"):
            yield number, line.lstrip()[2:].strip()
        before = line


def test_doc_comments_open_with_a_subject_and_a_verb() -> None:
    """Notes behind the members of a structure begin with a small letter, and are exempt."""
    wrong = [
        f"{path}:{number}: {text}"
        for path in sources.tracked()
        if path.endswith((".hpp", ".cpp", ".h", ".ts", ".svelte")) or is_python(path)
        for number, text in doc_comments(path)
        if OPENINGS.match(text)
    ]
    assert not wrong, (
        'open with a subject and a verb ("Decides which waiting jobs start now."):\n'
        + "\n".join(wrong)
    )


def test_doc_comments_are_found() -> None:
    assert OPENINGS.match("What a job is told") and not OPENINGS.match("Offers what a job needs")
    assert not OPENINGS.match("of one host")
    for path, text in (
        ("src/control_plane/schedule/plan.hpp", "Decides which waiting jobs start now"),
        ("tests/tidy/sources.py", "The sources as text, and modules.txt as a table."),
    ):
        assert any(found.startswith(text) for _, found in doc_comments(path)), path


def test_words_are_found_and_identifiers_are_not() -> None:
    pattern = re.compile(WORD % r"rooms?|faces?", re.I)
    for text in ("a room.", "Rooms", "(room)", "room, face"):
        assert pattern.search(text), text
    for text in (
        "rooms.txt",
        "module_of",
        "room()",
        "src/room/x",
        "classrooms",
        "room::x",
        "--room",
        "two-room-flat",
    ):
        assert not pattern.search(text), text


def main(context: str, module: str) -> None:
    print("\n".join(each for path in paths_of(module, context) for each in found_in(path, context)))


if __name__ == "__main__":
    main(*sys.argv[1:])
