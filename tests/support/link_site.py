"""A site of links for crawls in tests: `python -m tests.support.link_site PORT_FILE [--pages N] [--latency S]`.

Page n links to 2n and 2n+1, so every page is reached by exactly one link and any lost request shows; `/hits` counts the
fetches of each page; `/to/n` redirects to page n; `/echo` says what it was asked.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
from pathlib import Path

from aiohttp import web


def application(pages: int, latency_s: float) -> web.Application:
    hits: collections.Counter[int] = collections.Counter()

    async def page(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        hits[number] += 1
        if latency_s:
            await asyncio.sleep(latency_s)
        links = [f'<a href="/{child}">{child}</a>' for child in (2 * number, 2 * number + 1) if child <= pages]
        return web.Response(text="".join(links), content_type="text/html")

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
