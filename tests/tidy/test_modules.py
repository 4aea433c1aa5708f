"""modules.txt is true: every include is allowed, includes form no cycle,
every module is written down and says what it is."""

import os
import re
from collections.abc import Iterator

from tests import reach
from tests.tidy import sources

# How a third-party header is known, by the library's name in modules.txt.
LIBRARIES = {
    "nlohmann": r"nlohmann/",
    "boost": r"boost/",
    "openssl": r"openssl/",
    "curl": r"curl/",
    "sqlite": r"sqlite3\.h",
    "pq": r"(libpq-fe|libpq/.*|pg_config|postgres_ext)\.h",
    "fuse": r"fuse3?/|fuse(_\w+)?\.h",
    "simdjson": r"simdjson",
    "pcre2": r"pcre2\.h",
    "re2": r"re2/",
    "archive": r"archive(_entry)?\.h",
    "toml": r"toml\.hpp",
    "zlib": r"zlib\.h",
    "jpeg": r"jpeglib\.h|jerror\.h",
    "png": r"png\.h",
    "torch": r"(ATen|c10|torch)/",
    "xgboost": r"xgboost/",
    "threads": (
        r"(thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier|pthread\.h)$"
    ),
}
# What a module may touch of the system: how it is known, and what to use instead.
FACILITIES = {
    "clock": (
        r"system_clock|steady_clock|high_resolution_clock|clock_gettime|gettimeofday|\btime\(nullptr\)",
        "take a Clock (base/time.hpp)",
    ),
    "random": (r"random_device|getrandom|\brand\(\)|mt19937", "take a Random (base/random.hpp)"),
    "sockets": (
        r"sys/socket\.h|netinet/|arpa/inet\.h|sys/un\.h|sys/epoll\.h",
        "use net/link.hpp or net/http_server.hpp",
    ),
    "processes": (r"sys/wait\.h|spawn\.h|\bfork\(|\bexecv|\bposix_spawn", "use os/process.hpp"),
    "files": (
        r"<fstream>|<filesystem>|<fcntl\.h>|sys/stat\.h|\bfopen\(|(?<!\w)::open\(",
        "use os/files.hpp",
    ),
    "environment": (r"\bgetenv\(|\bsetenv\(|\benviron\b", "let main read it and pass a value"),
    "memory": (r"sys/mman\.h|shm_open|linux/futex\.h", "this is for collectives and os alone"),
}
SLEEP = r"sleep_for|sleep_until|\busleep\(|\bnanosleep\(|\bsleep\("
STANDARD_C = {
    "assert.h",
    "signal.h",
    "unistd.h",
    "errno.h",
    "limits.h",
    "stdint.h",
    "string.h",
    "stddef.h",
    "poll.h",
    "dirent.h",
    "sched.h",
}


def is_test(path: str) -> bool:
    return re.search(r"_(test|fuzz|bench)\.cpp$|/testing/", path) is not None


def includes(path: str) -> Iterator[tuple[int, bool, str]]:
    for number, line in enumerate(sources.read(path).splitlines(), 1):
        if found := re.match(r'\s*#\s*include\s*(["<])([^">]+)', line):
            yield number, found[1] == '"', found[2]


def test_every_include_is_allowed() -> None:
    wrong = []
    for path in sources.cpp():
        module = sources.module_of(path)
        if module is None:
            continue
        may_modules, may_libraries, _ = sources.modules()[module]
        for number, ours, name in includes(path):
            if (
                name == "base/thread_safety.hpp"
                and not is_test(path)
                and "threads" not in may_libraries
            ):
                wrong.append(f"{path}:{number}: module {module} may not touch the library threads")
            if ours:
                other = name.split("/")[0]
                if other in sources.modules() and other != module and other not in may_modules:
                    wrong.append(
                        f"{path}:{number}: module {module} may not include {name};"
                        " modules.txt allows it:"
                        f" {' '.join(sorted(may_modules)) or 'no module'}"
                    )
                continue
            for library, pattern in LIBRARIES.items():
                if (
                    re.match(pattern, name)
                    and library not in may_libraries
                    and not (is_test(path) and library == "threads")
                ):
                    wrong.append(
                        f"{path}:{number}: module {module} may not touch the library {library}"
                        f" (<{name}>)"
                    )
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_library_is_known_by_its_headers() -> None:
    named = set().union(*(libraries for _, libraries, _ in sources.modules().values()))
    assert named == set(LIBRARIES), "LIBRARIES has a pattern for each library of modules.txt"
    included = {name for path in sources.cpp() for _, ours, name in includes(path) if not ours}
    for library, pattern in LIBRARIES.items():
        assert any(re.match(pattern, name) for name in included), f"unused pattern of {library}"


def test_facilities_are_parameters() -> None:
    wrong = []
    for path in sources.cpp():
        module = sources.module_of(path)
        if module is None or is_test(path):
            continue
        may = sources.modules()[module][2]
        for number, line in enumerate(sources.code(path).splitlines(), 1):
            for facility, (pattern, instead) in FACILITIES.items():
                if facility not in may and re.search(pattern, line):
                    wrong.append(
                        f"{path}:{number}: module {module} may not touch {facility}: {instead}"
                    )
            if module not in (
                "os",
                "net",
                "containers",
                "networks",
                "collectives",
                "gradients",
                "membership",
                "local_sgd",
                "parameter_server",
                "bench",
                "sdk",  # polls stores of torch
            ) and re.search(SLEEP, line):
                wrong.append(
                    f"{path}:{number}: a thread sleeps; wait for a condition with a deadline"
                )
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_cycle() -> None:
    table = {module: uses for module, (uses, _, _) in sources.modules().items()}
    done, path = set(), []

    def visit(module: str) -> None:
        assert module not in path, "a cycle of modules: " + " -> ".join(
            path[path.index(module) :] + [module]
        )
        if module in done:
            return
        path.append(module)
        for used in sorted(table.get(module, ())):
            visit(used)
        path.pop()
        done.add(module)

    for module in table:
        visit(module)


def test_every_module_is_written_down_and_says_what_it_is() -> None:
    folders = {
        path.split("/")[2]
        for path in sources.tracked()
        if path.startswith("src/") and path.count("/") > 2
    }
    unknown = folders - set(sources.modules())
    assert not unknown, f"folders of src/ without a line in modules.txt: {sorted(unknown)}"
    empty = {
        module for module in sources.modules() if module not in reach.FOLDERS.values()
    } - folders
    assert not empty, f"modules.txt names modules without a folder: {sorted(empty)}"
    for module in folders:
        readme = f"src/{reach.folder_of(module)}/README.md"
        assert os.path.exists(os.path.join(sources.ROOT, readme)), (
            f"{readme} is missing: what belongs here, what does not, where to start"
        )
        assert len(sources.read(readme).splitlines()) <= 60, f"{readme} is more than a page"


def test_no_asio_above_net() -> None:
    wrong = [
        path
        for path in sources.cpp(".hpp")
        if sources.module_of(path) != "bench"
        and re.search(r"\basio\b|boost/", sources.code(path))
        and not path.endswith("_asio.hpp")
    ]
    assert not wrong, f"headers that show asio: {wrong}"


UNITS_MAX = 25  # of a folder, without its subfolders: a header and its source are one
LINES_MAX = 12_000  # of a module, without tests


def units() -> dict[str, set[str]]:
    """folder -> the names of its headers and sources, without tests."""
    found: dict[str, set[str]] = {}
    for path in sources.cpp(".hpp", ".cpp", ".h"):
        if path.startswith(("src/", "apps/", "sim/", "bench/")) and not is_test(path):
            folder, name = os.path.split(path)
            found.setdefault(folder, set()).add(name.rsplit(".", 1)[0])
    return found


def test_folders_are_not_flat() -> None:
    wrong = [
        f"{folder}: {len(names)} units, at most {UNITS_MAX}: group them into folders of one idea"
        for folder, names in units().items()
        if len(names) > UNITS_MAX
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_modules_have_a_limit_of_lines() -> None:
    lines: dict[str, int] = {}
    for path in sources.cpp(".hpp", ".cpp", ".h"):
        if path.startswith("src/") and not is_test(path):
            module = sources.module_of(path) or path
            lines[module] = lines.get(module, 0) + sources.read(path).count("\n")
    wrong = [
        f"{module}: {count} lines, at most {LINES_MAX}: split it"
        for module, count in lines.items()
        if count > LINES_MAX
    ]
    assert not wrong, "\n" + "\n".join(wrong)
