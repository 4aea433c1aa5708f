"""rooms.txt is true: every include is allowed, there is no cycle,
every room is written down and says what it is."""

import os
import re
from collections.abc import Iterator

from tests.tidy import sources

# How a third-party header is known, by the library's name in rooms.txt.
LIBRARIES = {
    "nlohmann": r"nlohmann/",
    "boost": r"boost/",
    "openssl": r"openssl/",
    "curl": r"curl/",
    "sqlite": r"sqlite3\.h",
    "simdjson": r"simdjson",
    "pcre2": r"pcre2\.h",
    "re2": r"re2/",
    "archive": r"archive(_entry)?\.h",
    "toml": r"toml\.hpp",
    "zlib": r"zlib\.h",
    "threads": (
        r"(thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier|pthread\.h)$"
    ),
}
# What a room may touch of the system: how it is known, and what to use instead.
FACILITIES = {
    "clock": (
        r"system_clock|steady_clock|high_resolution_clock|clock_gettime|gettimeofday|\btime\(nullptr\)",
        "take a Clock (base/time.hpp)",
    ),
    "random": (r"random_device|getrandom|\brand\(\)|mt19937", "take a Random (base/random.hpp)"),
    "sockets": (
        r"sys/socket\.h|netinet/|arpa/inet\.h|sys/un\.h|sys/epoll\.h",
        "use host/link.hpp or host/http_server.hpp",
    ),
    "processes": (r"sys/wait\.h|spawn\.h|\bfork\(|\bexecv|\bposix_spawn", "use host/process.hpp"),
    "files": (
        r"<fstream>|<filesystem>|<fcntl\.h>|sys/stat\.h|\bfopen\(|(?<!\w)::open\(",
        "use host/files.hpp",
    ),
    "environment": (r"\bgetenv\(|\bsetenv\(|\benviron\b", "let main read it and pass a value"),
    "memory": (r"sys/mman\.h|shm_open|linux/futex\.h", "this is collectives' and host's"),
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
        room = sources.room_of(path)
        if room is None:
            continue
        may_rooms, may_libraries, _ = sources.rooms()[room]
        for number, ours, name in includes(path):
            if ours:
                other = name.split("/")[0]
                if other in sources.rooms() and other != room and other not in may_rooms:
                    wrong.append(
                        f"{path}:{number}: room {room} may not include {name}; rooms.txt allows it:"
                        f" {' '.join(sorted(may_rooms)) or 'no room'}"
                    )
                continue
            for library, pattern in LIBRARIES.items():
                if (
                    re.match(pattern, name)
                    and library not in may_libraries
                    and not (is_test(path) and library == "threads")
                ):
                    wrong.append(
                        f"{path}:{number}: room {room} may not touch the library {library}"
                        f" (<{name}>)"
                    )
    assert not wrong, "\n" + "\n".join(wrong)


def test_facilities_are_parameters() -> None:
    wrong = []
    for path in sources.cpp():
        room = sources.room_of(path)
        if room is None or is_test(path):
            continue
        may = sources.rooms()[room][2]
        for number, line in enumerate(sources.code(path).splitlines(), 1):
            for facility, (pattern, instead) in FACILITIES.items():
                if facility not in may and re.search(pattern, line):
                    wrong.append(
                        f"{path}:{number}: room {room} may not touch {facility}: {instead}"
                    )
            if room not in ("host", "collectives", "bench") and re.search(SLEEP, line):
                wrong.append(
                    f"{path}:{number}: nobody sleeps; wait for a condition with a deadline"
                )
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_cycle() -> None:
    table = {room: uses for room, (uses, _, _) in sources.rooms().items()}
    done, path = set(), []

    def visit(room: str) -> None:
        assert room not in path, "a cycle of rooms: " + " -> ".join(
            path[path.index(room) :] + [room]
        )
        if room in done:
            return
        path.append(room)
        for used in sorted(table.get(room, ())):
            visit(used)
        path.pop()
        done.add(room)

    for room in table:
        visit(room)


def test_every_room_is_written_down_and_says_what_it_is() -> None:
    folders = {
        path.split("/")[1]
        for path in sources.tracked()
        if path.startswith("src/") and path.count("/") > 1
    }
    unknown = folders - set(sources.rooms())
    assert not unknown, f"folders of src/ without a line in rooms.txt: {sorted(unknown)}"
    empty = {room for room in sources.rooms() if room not in ("apps", "sim", "bench")} - folders
    assert not empty, f"rooms.txt names rooms without a folder: {sorted(empty)}"
    for room in folders:
        readme = f"src/{room}/README.md"
        assert os.path.exists(os.path.join(sources.ROOT, readme)), (
            f"{readme} is missing: what belongs here, what does not, where to start"
        )
        assert len(sources.read(readme).splitlines()) <= 60, f"{readme} is more than a page"


def test_no_asio_above_host() -> None:
    wrong = [
        path
        for path in sources.cpp(".hpp")
        if sources.room_of(path) != "bench"
        and re.search(r"\basio\b|boost/", sources.code(path))
        and not path.endswith("_asio.hpp")
    ]
    assert not wrong, f"headers that show asio: {wrong}"
