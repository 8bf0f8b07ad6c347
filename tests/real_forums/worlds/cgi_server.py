"""Serves a folder, and runs the Perl scripts in it (`.pl`, `.cgi`) as CGI: `cgi_server.py PORT FOLDER`."""

from __future__ import annotations

import os
import subprocess
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


class Handler(SimpleHTTPRequestHandler):
    """A file, or what the script in the address's path prints."""

    def do_GET(self) -> None:
        """Serve a file, or run a script."""
        path, _, query = self.path.partition("?")
        parts = unquote(path).split("/")
        place = next((n for n, part in enumerate(parts) if part.endswith((".pl", ".cgi"))), None)
        if place is None:
            super().do_GET()
            return
        script = Path(self.directory, *parts[: place + 1])
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environment = os.environ | {
            "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_PROTOCOL": "HTTP/1.0", "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "/".join(parts[: place + 1]), "PATH_INFO": "/".join(["", *parts[place + 1 :]]),
            "QUERY_STRING": query, "REQUEST_URI": self.path, "REMOTE_ADDR": "127.0.0.1", "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": self.headers.get("Content-Type") or "", "HTTP_HOST": self.headers.get("Host") or "",
            "SERVER_NAME": "127.0.0.1", "SERVER_PORT": str(self.server.server_port), "HTTP_REFERER": "/",
        }  # fmt: skip
        if place + 1 == len(parts):
            environment["PATH_INFO"] = ""
        done = subprocess.run(
            ["perl", "-I.", script.name], input=body, env=environment, cwd=script.parent, capture_output=True, check=False
        )
        head, _, page = done.stdout.replace(b"\r\n", b"\n", 40).partition(b"\n\n")
        sys.stderr.write(done.stderr.decode(errors="replace"))
        headers = [line.partition(":") for line in head.decode().splitlines() if ":" in line]
        status = next((value.split()[0] for name, _, value in headers if name.lower() == "status"), None)
        self.send_response(int(status or (302 if any(name.lower() == "location" for name, _, _ in headers) else 200)))
        for name, _, value in headers:
            if name.lower() not in ("status", "content-length", "connection"):
                self.send_header(name, value.strip())
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def do_POST(self) -> None:
        """Run a script."""
        self.do_GET()


if __name__ == "__main__":
    os.chdir(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
