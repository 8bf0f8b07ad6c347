"""A real Prometheus with the project's configuration and rules, for tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.support.processes import wait_until

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
PROMETHEUS = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
MISSING = "prometheus is not installed (apt-get install prometheus, or PROMETHEUS=path)"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SHORTEST_RANGE_S = 4  # a rate needs two samples, of which one may be late


class Prometheus:
    """A running server."""

    def __init__(self, port: int, log: Path) -> None:
        self._base = f"http://127.0.0.1:{port}/api/v1"
        self._log = log

    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text()[-3000:]

    def get(self, path: str, **query: str) -> Any:
        """The data of an answer. Raises HTTPError where it refuses a query."""
        with urllib.request.urlopen(f"{self._base}/{path}?{urllib.parse.urlencode(query)}", timeout=30) as response:
            return json.load(response)["data"]

    def values(self, query: str) -> list[str]:
        """What a query gives now, one value a series."""
        return [one["value"][1] for one in self.get("query", query=query)["result"]]

    def firing(self) -> set[str]:
        """The alerts that fire now."""
        return {one["labels"]["alertname"] for one in self.get("alerts")["alerts"] if one["state"] == "firing"}

    def fired(self) -> set[str]:
        """The alerts that have fired in the last ten minutes."""
        query = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[10m]))'
        return {one["metric"]["alertname"] for one in self.get("query", query=query)["result"]}


def rules_of(name: str) -> list[dict[str, str]]:
    """The rules of a file of the project's."""
    return [rule for group in yaml.safe_load((FOLDER / name).read_text("utf-8"))["groups"] for rule in group["rules"]]


def hastened(rules: str, times: int = 300) -> str:
    """The same rules for a scrape each second: ranges are so many times shorter, and what lasts for 1 s fires."""

    def shorter(found: re.Match[str]) -> str:
        return f"[{max(_SHORTEST_RANGE_S, int(found[1]) * _SECONDS[found[2]] // times)}s]"

    return re.sub(r"(?m)^( *for: )\S+", r"\g<1>1s", re.sub(r"\[(\d+)([smhd])\]", shorter, rules))


@contextmanager
def prometheus(folder: Path, exporter: int, change: Callable[[str], str] = str) -> Iterator[Prometheus]:
    """The project's configuration with another address and a shorter interval; `change` is made to its rules."""
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text("utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    for name in config["rule_files"]:
        (folder / name).write_text(change((FOLDER / name).read_text("utf-8")), "utf-8")
    config["scrape_configs"] = config["scrape_configs"][:1]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{exporter}"]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", "--web.listen-address=127.0.0.1:0"]
    path = folder / "prometheus.log"
    with path.open("w") as log, subprocess.Popen([str(PROMETHEUS), *options], stdout=log, stderr=log) as process:
        try:
            listens = wait_until(
                lambda: re.search(r'"Listening on" address=127\.0\.0\.1:(\d+)', path.read_text()), path.read_text, 60
            )
            yield Prometheus(int(listens[1]), path)
        finally:
            process.kill()
