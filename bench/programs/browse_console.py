"""Simulates many browsers that show the list of jobs. Each reads the event stream of its session
and, when jobs change, reads the list again, at most once a second.

  browse_console.py HOST PORT TABS    reads one-time tokens from its standard input, a line for
                                      each session with that many tabs; prints "ready" once all of
                                      them have read the list, and at the end of its input the
                                      number of lists that were read
"""

from __future__ import annotations

import asyncio
import json
import sys

REFRESH_SECONDS = 1.0
LIST = json.dumps({"MaxResults": 100})


class Connection:
    """A persistent connection to the console."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port, self.cookie = host, port, ""
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def open(self) -> Connection:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        return self

    async def send(self, method: str, path: str, body: str = "") -> dict[str, str]:
        """Sends a request, and returns the headers of its answer."""
        self.writer.write(
            f"{method} /console/{path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"Sec-Fetch-Site: same-origin\r\nCookie: {self.cookie}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        status = await self.reader.readline()
        if b" 20" not in status:
            rest = (await self.reader.read(2000)).decode(errors="replace")
            raise RuntimeError(f"{method} {path}: {status.decode().strip()}: {rest}")
        headers = {}
        while line := (await self.reader.readline()).decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return headers

    async def fetch(self, method: str, path: str, body: str = "") -> dict[str, str]:
        """As send(), and reads the body."""
        headers = await self.send(method, path, body)
        if "content-length" in headers:
            await self.reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(await self.reader.readline(), 16):
                await self.reader.readexactly(size + 2)
            await self.reader.readline()
        return headers


class Browser:
    """Has a connection for calls and one for the event stream."""

    def __init__(self, host: str, port: int) -> None:
        self.calls, self.events = Connection(host, port), Connection(host, port)
        self.changed, self.lists = asyncio.Event(), 0

    async def open(self, cookie: str) -> None:
        self.calls.cookie = self.events.cookie = cookie
        await self.calls.open()
        await (await self.events.open()).send("GET", "events?region=us-east-1")
        await self.read_list()

    async def read_list(self) -> None:
        await self.calls.fetch("POST", "api/trainyard/ListJobs?region=us-east-1", LIST)
        self.lists += 1

    async def follow(self) -> None:
        while line := await self.events.reader.readline():
            if line.startswith((b"event: jobs", b"event: resync")):
                self.changed.set()

    async def refresh(self) -> None:
        while True:
            await self.changed.wait()
            self.changed.clear()
            await self.read_list()
            await asyncio.sleep(REFRESH_SECONDS)


async def sign_in(host: str, port: int, token: str) -> str:
    """Returns the cookie of the new session."""
    connection = await Connection(host, port).open()
    headers = await connection.fetch("POST", "session", json.dumps({"Token": token}))
    connection.writer.close()
    return headers["set-cookie"].split(";")[0]


async def main(host: str, port: int, tabs: int) -> None:
    browsers = []
    while token := sys.stdin.readline().strip():
        cookie = await sign_in(host, port, token)
        for _ in range(tabs):
            browsers.append(Browser(host, port))
            await browsers[-1].open(cookie)
    tasks = [
        asyncio.create_task(work)
        for browser in browsers
        for work in (browser.follow(), browser.refresh())
    ]
    print("ready", flush=True)
    end = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    done, _ = await asyncio.wait([end, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    if not end.done():
        raise RuntimeError("an event stream ended")
    for task in tasks:
        task.cancel()
    print(sum(browser.lists for browser in browsers), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
