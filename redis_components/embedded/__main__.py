"""`python -m redis_components.embedded status|stop`: look at the embedded server, or stop it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from redis_components.errors import TrawlError
from redis_components.server.variables import load_env_file, variable

from . import keeper, session
from .binary import probe
from .server_files import data_dir


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m redis_components.embedded", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="status|stop")
    commands.add_parser("status", help="show if it runs, its address and its version").add_argument("--json", action="store_true")
    commands.add_parser("stop", help="stop it; its data stays, and the next command that needs it starts it again")
    keep = commands.add_parser("keep")  # how session.py starts the keeper; of no use by hand
    keep.add_argument("root", type=Path)
    keep.add_argument("binary", type=Path)
    keep.add_argument("source")
    options = parser.parse_args(arguments)
    try:
        if options.command == "keep":
            return _keep(options)
        load_env_file()
        return _status(as_json=options.json) if options.command == "status" else _stop()
    except TrawlError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1


def _keep(options: argparse.Namespace) -> int:
    binary = probe(options.binary, options.source)
    if binary is None:
        keeper.report(error=f"{options.binary} was a server a moment ago and is none now: try again")
        return 1
    return keeper.main(options.root, binary)


def _status(*, as_json: bool) -> int:
    state = session.status()
    if as_json:
        sys.stdout.write(json.dumps(asdict(state) if state else None) + "\n")
    elif state:
        sys.stdout.write(f"{state.version} ({state.binary}), pid {state.pid}, data in {state.directory}\n{state.url}\n")
    else:
        sys.stdout.write(f"no embedded Redis runs for {data_dir()}\n")
    if variable("TRAWL_REDIS_URL") and not as_json:
        sys.stdout.write("TRAWL_REDIS_URL is set: commands started here use that server instead\n")
    return 0


def _stop() -> int:
    sys.stdout.write("stopped\n" if session.stop() else f"no embedded Redis runs for {data_dir()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
