"""A site of links for crawls in tests: `python -m tests.support.link_site PORT_FILE [--pages N] [--latency S]`.

Page n links to 2n and 2n+1, so every page is reached by exactly one link and any lost request shows; `/hits` counts the
fetches of each page; `/to/n` redirects to page n; `/echo` says what it was asked.

For crawls that have to last until a test has seen enough: POST `/begin/W` makes a page that starts W chains, which go on until
POST `/end`; `/chains` says which pages were linked since. `/crawlers` says when each user agent asked for its first page and its
last.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import time
from pathlib import Path

from aiohttp import web


class Chains:
    """Pages that always link to one more, until they are told to end; each is linked once. Their numbers are above the tree's."""

    def __init__(self, above: int) -> None:
        self._width = 0
        self._next = self._first = above + 1
        self._links: dict[int, list[int]] = {}  # a page that is fetched again has the links that it had before

    @property
    def growing(self) -> bool:
        return self._width > 0

    def begin(self, width: int) -> int:
        """The page to start from."""
        self._width, self._first = width, self._next
        self._links[self._first] = list(range(self._first + 1, self._first + 1 + width))
        self._next += 1 + width
        return self._first

    def end(self) -> None:
        self._width = 0

    def linked(self) -> list[int]:
        """Every page since `begin`, the first one included."""
        return list(range(self._first, self._next))

    def links(self, page: int) -> list[int]:
        if page not in self._links:
            self._links[page] = [self._next] if self.growing else []
            self._next += len(self._links[page])
        return self._links[page]


def application(pages: int, latency_s: float) -> web.Application:
    hits: collections.Counter[int] = collections.Counter()
    chains = Chains(above=pages)
    crawlers: dict[str, list[float]] = {}

    async def page(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        hits[number] += 1
        agent = request.headers.get("User-Agent", "")
        crawlers[agent] = [crawlers.get(agent, [time.time()])[0], time.time()]
        if latency_s and (number <= pages or chains.growing):
            await asyncio.sleep(latency_s)
        children = (
            [child for child in (2 * number, 2 * number + 1) if child <= pages] if number <= pages else chains.links(number)
        )
        links = [f'<a href="/{child}">{child}</a>' for child in children]
        return web.Response(text="".join(links), content_type="text/html")

    async def begin(request: web.Request) -> web.Response:
        return web.json_response(chains.begin(int(request.match_info["width"])))

    async def end(_: web.Request) -> web.Response:
        chains.end()
        return web.json_response(chains.linked())

    async def show_chains(_: web.Request) -> web.Response:
        return web.json_response(chains.linked())

    async def show_crawlers(_: web.Request) -> web.Response:
        return web.json_response(crawlers)

    async def elsewhere(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": f"/{request.match_info['number']}"})

    async def echo(request: web.Request) -> web.Response:
        return web.json_response(
            {
                "method": request.method,
                "query": dict(request.query),
                "headers": {name: request.headers.getall(name) for name in request.headers},
                "cookies": dict(request.cookies),
                "body": await request.text(),
            }
        )

    async def show_hits(_: web.Request) -> web.Response:
        return web.json_response(hits)

    app = web.Application()
    app.add_routes([web.get("/hits", show_hits), web.get(r"/to/{number:\d+}", elsewhere), web.get(r"/{number:\d+}", page)])
    app.add_routes([web.route("*", "/echo", echo)])
    app.add_routes([web.post(r"/begin/{width:\d+}", begin), web.post("/end", end)])
    app.add_routes([web.get("/chains", show_chains), web.get("/crawlers", show_crawlers)])
    return app


async def serve(port_file: Path, pages: int, latency_s: float) -> None:
    runner = web.AppRunner(application(pages, latency_s), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    written = port_file.with_suffix(".new")
    written.write_text(json.dumps(runner.addresses[0][1]))
    written.replace(port_file)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port_file", type=Path)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--latency", type=float, default=0.0)
    chosen = parser.parse_args()
    asyncio.run(serve(chosen.port_file, chosen.pages, chosen.latency))
