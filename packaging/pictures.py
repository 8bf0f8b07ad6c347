"""docs/images/first-posts.svg and deploy.svg: animated terminal sessions, made by `make pictures` from real runs.

The commands of the quickstart, or of a deployment, run in a temporary project, on the demo's forum and a real fleet.
Each command's output, with its
colours, becomes a frame; the frames are one SVG, shown one after the other by CSS, without a script and without fonts of others.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
COLUMNS, LINES = 92, 26
SHOWN_S = 4.0  # each frame
COMMANDS = (
    "trawl seed f1 f2 --site demo",
    "trawl status",
    "trawl forums",
    "trawl export posts --site demo --format csv --output posts.csv",
    'trawl sql "SELECT author, title FROM posts LIMIT 6"',
)
SPIDER = """import scrapy
from redis_components.spiders import RedisSpider
class Books(RedisSpider):
    name = "books"
    def parse(self, response):
        yield {"title": response.css("title::text").get()}
"""
SETTINGS = """
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
STATS_CLASS = "redis_components.stats.RedisStatsCollector"
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
"""
DEPLOYS = (
    "trawl deploy . --service books",
    "sed -i 's/^import scrapy$/import scrappy/' shop/spiders/books.py && trawl deploy . --service books",
    "sed -i 's/^import scrappy$/import json/' shop/spiders/books.py && trawl deploy . --service books",
    "trawl services versions rollback books",
)
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> int:
    """Record the sessions and write the pictures; `pictures.py deploy` makes that one alone."""
    for name, commands in (("first-posts", COMMANDS), ("deploy", DEPLOYS)):
        if name not in (sys.argv[1:] or [name]):
            continue
        with tempfile.TemporaryDirectory(prefix="trawl-pictures-") as folder:
            frames = _session(Path(folder), commands)
        target = IMAGES / f"{name}.svg"
        target.write_text(_moving([_picture(frame, number) for number, frame in enumerate(frames)]), "utf-8")
        sys.stdout.write(f"{target.relative_to(ROOT)}: {len(frames)} frames, {target.stat().st_size:,} bytes\n")
    return 0


def _make_project(folder: Path, environment: dict[str, str]) -> None:
    """Make a Scrapy project with a spider, a service of the fleet."""
    shutil.rmtree(folder / "sites")
    subprocess.run(["scrapy", "startproject", "shop", "."], cwd=folder, env=environment, check=True, capture_output=True)
    (folder / "shop/spiders/books.py").write_text(SPIDER)
    with (folder / "shop/settings.py").open("a") as settings:
        settings.write(SETTINGS)
    (folder / "trawl.toml").write_text('[services.books]\nsize = 2\nconsumer = "jsonl:books.jsonl"\n')


def _session(folder: Path, commands: Sequence[str]) -> list[str]:
    """Run the session; return the screen after each command, with the terminal's colours."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TRAWL_") and name != "NO_COLOR"}
    port = _free_port()
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
        "LINES": str(LINES),
        "TRAWL_DEMO_URL": f"http://127.0.0.1:{port}",
        "TRAWL_DATA_DIR": str(folder / "data"),
        "TRAWL_WHEELS_DIR": str(folder / "data/wheels"),
        "TRAWL_ENV_FILE": "",
    }
    (folder / "sites").mkdir()
    (folder / "sites/demo.toml").write_text((ROOT / "demo/sites/demo.toml").read_text("utf-8"))
    if commands is DEPLOYS:
        _make_project(folder, environment)
    quiet = {"cwd": folder, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    forum = subprocess.Popen([sys.executable, "-m", "demo.forum", "--port", str(port), "--rate", "2"], **quiet)
    up = subprocess.Popen(["trawl", "up", "--port-flower", "0", "--port-exporter", "0"], **quiet)
    screen, frames = "", []
    try:
        time.sleep(30)  # everything has started, and beat has had the first forums scanned
        for command in commands:
            screen += f"\x1b[1;32m$\x1b[0m \x1b[1m{command}\x1b[0m\n{output_of(command, folder, environment)}\n"
            frames.append(screen)
            time.sleep(2)
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(120)
        forum.terminate()
        forum.wait(60)
    return frames


def output_of(command: str, folder: Path, environment: dict[str, str], size_of: tuple[int, int] = (LINES, COLUMNS)) -> str:
    """Return the output of a command on a terminal of so many lines and columns."""
    ours, theirs = pty.openpty()
    size = f"stty rows {size_of[0]} cols {size_of[1]} 2>/dev/null; {command}"
    process = subprocess.Popen(["bash", "-c", size], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the terminal's other side is closed
            break
        if not piece:
            break
        shown += piece
    process.wait(60)
    os.close(ours)
    return shown.decode("utf-8", "replace").replace("\r\n", "\n")


def _picture(screen: str, number: int) -> str:
    """Render one frame, the last lines of the screen, as an SVG."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    lines = screen.rstrip("\n").split("\n")[-LINES:]
    console.print(Text.from_ansi("\n".join([*lines, *[" "] * (LINES - len(lines))])), overflow="crop", no_wrap=True, end="")
    svg = console.export_svg(title="trawl", theme=MONOKAI, unique_id=f"frame{number}")
    return _FONTS.sub("", svg).replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")


def _moving(pictures: list[str]) -> str:
    """Join the frames into one picture, each shown for some seconds."""
    box = re.search(r'viewBox="([^"]+)"', pictures[0])
    assert box is not None
    share = 100 / len(pictures)
    style = (
        f".frame {{ visibility: hidden; animation: show {len(pictures) * SHOWN_S}s step-end infinite; }}"
        f"@keyframes show {{ 0% {{ visibility: visible; }} {share:.3f}% {{ visibility: hidden; }} }}"
        "@media (prefers-reduced-motion: reduce) { .frame { animation: none; } .frame:last-child { visibility: visible; } }"
    )
    frames = "".join(
        f'<g class="frame" style="animation-delay: {number * SHOWN_S}s">{picture}</g>' for number, picture in enumerate(pictures)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box[1]}"><style>{style}</style>{frames}</svg>\n'


def _free_port() -> int:
    from redis_components.embedded.files import free_port

    return free_port()


if __name__ == "__main__":
    raise SystemExit(main())
