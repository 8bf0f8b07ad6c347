"""A site that answers with the delay in its address: `python -m benchmarks.support.site PORT_FILE` serves `/MILLISECONDS/NAME`.

It is cheap to serve, so that the crawler is measured.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from redis_components.embedded.die_with_parent import tied
from tests.support.processes import wait_until

from .report import BenchmarkFailed

ROOT = Path(__file__).parents[2]
BODY = "<html><body>" + "<p>A page of a forum, with about as many words as a short post has.</p>" * 20 + "</body></html>"


async def page(request: web.Request) -> web.Response:
    """Wait, then answer."""
    wait_ms = float(request.match_info["wait_ms"])
    if wait_ms:
        await asyncio.sleep(wait_ms / 1000)
    return web.Response(text=BODY, content_type="text/html")


async def serve(port_file: Path) -> None:
    """Listen on a free port and write it to `port_file`."""
    app = web.Application()
    app.add_routes([web.get(r"/{wait_ms:\d+(\.\d+)?}/{name}", page)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    written = port_file.with_suffix(".new")
    written.write_text(str(runner.addresses[0][1]))
    written.replace(port_file)
    await asyncio.Event().wait()


@contextmanager
def site() -> Iterator[str]:
    """Run the site in a separate process; yield its URL."""
    with tempfile.TemporaryDirectory(prefix="trawl-bench-site-") as folder:
        port_file = Path(folder) / "port"
        process = subprocess.Popen(tied(sys.executable, "-m", "benchmarks.support.site", str(port_file)), cwd=ROOT)
        try:
            wait_until(lambda: port_file.exists() or process.poll() is not None, "the site listens", 30)
            if process.poll() is not None:
                raise BenchmarkFailed(f"the site ended with code {process.returncode} at its start")
            yield f"http://127.0.0.1:{port_file.read_text()}"
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
