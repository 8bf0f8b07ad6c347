"""A webhook's receiver as a process that can be killed: it keeps each event in a file before it answers, and one that comes again
once, as docs/events.md tells receivers to.

    python keeping_receiver.py PORT FILE

A line of the file is the id of an event; one that had come before stands behind `again `.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


def serve(port: int, kept: Path) -> None:
    """Until it is killed."""
    known = set(kept.read_text().split("\n")) if kept.exists() else set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            ids = [event["id"] for event in body["events"]]
            with kept.open("a") as file:
                file.writelines(f"{'again ' if one in known else ''}{one}\n" for one in ids)
            known.update(ids)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
