"""docs/images/first-posts.svg: an animated terminal session, made by `make pictures` from a real run.

The commands of the quickstart run in a temporary project, on the demo's forum and a real fleet. Each command's output, with its
colours, becomes a frame; the frames are one SVG, shown one after the other by CSS, without a script and without fonts of others.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs/images/first-posts.svg"
COLUMNS, LINES = 92, 26
SHOWN_S = 4.0  # each frame
COMMANDS = (
    "trawl seed f1 f2 --site demo",
    "trawl status",
    "trawl forums",
    "trawl export posts --site demo --format csv --output posts.csv",
    'trawl sql "SELECT author, title FROM posts LIMIT 6"',
)
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> int:
    """Record the session and write the picture."""
    with tempfile.TemporaryDirectory(prefix="trawl-pictures-") as folder:
        frames = _session(Path(folder))
    TARGET.write_text(_moving([_picture(frame, number) for number, frame in enumerate(frames)]), "utf-8")
    sys.stdout.write(f"{TARGET.relative_to(ROOT)}: {len(frames)} frames, {TARGET.stat().st_size:,} bytes\n")
    return 0


def _session(folder: Path) -> list[str]:
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
        "TRAWL_ENV_FILE": "",
    }
    (folder / "sites").mkdir()
    (folder / "sites/demo.toml").write_text((ROOT / "demo/sites/demo.toml").read_text("utf-8"))
    quiet = {"cwd": folder, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    forum = subprocess.Popen([sys.executable, "-m", "demo.forum", "--port", str(port), "--rate", "2"], **quiet)
    up = subprocess.Popen(["trawl", "up", "--port-flower", "0", "--port-exporter", "0"], **quiet)
    screen, frames = "", []
    try:
        time.sleep(30)  # everything has started, and beat has had the first forums scanned
        for command in COMMANDS:
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
