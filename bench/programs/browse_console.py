"""Does what many browsers do that show the list of jobs: each follows the event stream of its
session and, when jobs change, reads the list again, at most once a second.

  browse_console.py HOST PORT    reads one-time tokens from its standard input, a line for each
                                 browser; prints "ready" once all of them have read the list, and
                                 at the end of its input the number of lists that were read
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
            raise RuntimeError(f"{method} {path}: {status.decode().strip()}")
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

    async def sign_in(self, token: str) -> None:
        await self.calls.open()
        headers = await self.calls.fetch("POST", "session", json.dumps({"Token": token}))
        self.calls.cookie = self.events.cookie = headers["set-cookie"].split(";")[0]
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


async def main(host: str, port: int) -> None:
    tokens = []
    while token := sys.stdin.readline().strip():
        tokens.append(token)
    browsers = [Browser(host, port) for _ in tokens]
    for browser, token in zip(browsers, tokens, strict=True):
        await browser.sign_in(token)
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
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
