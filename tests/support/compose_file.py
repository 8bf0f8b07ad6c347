"""Reading docker-compose.yml, Dockerfile and .env.example as Docker does, as far as we use them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
_VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?::-(?P<default>(?:\$\{[^}]*\}|[^}])*)|:\?(?P<complaint>[^}]*))\})")


class MissingVariable(Exception):
    """`docker compose` would end with this message: a variable has no value and the file demands one."""


@dataclass(frozen=True, kw_only=True)
class ComposeService:
    """One service; `environment` is its own, over that of the image."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    volumes: Mapping[str, str]  # path in the container -> volume or host path
    healthcheck: tuple[str, ...]  # arguments; empty: it has none
    raw: Mapping[str, Any]

    def option(self, name: str) -> str | None:
        """`5555` for `option("--port")` of a command with `--port=5555` or `--port 5555`."""
        words = [part for word in self.command for part in (word.split("=", 1) if word.startswith("--") else [word])]
        return words[words.index(name) + 1] if name in words else None


def variables() -> dict[str, str | None]:
    """Every variable that the compose file asks for; its value is the complaint where it must be set, else None."""
    return {m["name"]: m["complaint"] for m in _VARIABLE.finditer(_text()) if m["name"]}


def services(given: Mapping[str, str], file: Path = ROOT / "docker-compose.yml") -> dict[str, ComposeService]:
    """All services, of every profile, with `given` as the environment of `docker compose`. Raises MissingVariable."""
    document = filled(yaml.safe_load(file.read_text()), given)
    return {name: _service(name, raw) for name, raw in document["services"].items()}


def example() -> dict[str, str]:
    """What deploy/.env.example names as required, with values as deploy/new-secrets.sh gives them."""
    return {name: value or "of-a-test" for name, value in _env_lines(r"^(\w+)=(.*)$").items()}


def left_empty() -> list[str]:
    """The variables of deploy/.env.example without a value: the compose file demands one."""
    return [name for name, value in _env_lines(r"^(\w+)=(.*)$").items() if not value]


def commented_example() -> dict[str, str]:
    """What deploy/.env.example offers, commented out."""
    return _env_lines(r"^#(\w+)=(.*)$")


def image_environment() -> dict[str, str]:
    """ENV of the fleet's image."""
    return dict(pair.split("=", 1) for name, rest in image() if name == "ENV" for pair in shlex.split(rest))


def image(target: str = "") -> list[tuple[str, str]]:
    """The instructions of a stage, "" is the last one, after those of the stages that it is built from."""
    named = {stage[0][1].partition(" AS ")[2]: stage for stage in instructions()}
    stage = named[target]
    origin = stage[0][1].partition(" AS ")[0]
    return [*(image(origin) if origin in named else [("FROM", origin)]), *stage[1:]]


def instructions() -> list[list[tuple[str, str]]]:
    """The Dockerfile's (INSTRUCTION, rest) by stage, continuation lines joined, arguments before the first stage filled in."""
    stages: list[list[tuple[str, str]]] = []
    arguments: dict[str, str] = {}
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "ARG" and not stages:
            key, _, value = rest.strip().partition("=")
            arguments["${" + key + "}"] = arguments.get(value, value)
            continue
        if name == "FROM":
            stages.append([])
            for key, value in arguments.items():
                rest = rest.replace(key, value)
        stages[-1].append((name, rest.strip()))
    return stages


def _text() -> str:
    return (ROOT / "docker-compose.yml").read_text()


def filled(node: Any, given: Mapping[str, str]) -> Any:
    """A part of a compose file with its variables filled in, as `docker compose` does it."""
    if isinstance(node, dict):
        return {key: filled(value, given) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(value, given) for value in node]
    return _VARIABLE.sub(lambda m: _value(m, given), node) if isinstance(node, str) else node


def _value(match: re.Match[str], given: Mapping[str, str]) -> str:
    if match["dollar"]:
        return "$"
    if value := given.get(match["name"]):  # `:-` and `:?` take an empty one for none
        return value
    if match["complaint"] is not None:
        raise MissingVariable(f"{match['name']}: {match['complaint']}")
    return str(filled(match["default"], given))


def _service(name: str, raw: dict[str, Any]) -> ComposeService:
    command = raw["command"]
    test = raw.get("healthcheck", {}).get("test", [""])
    return ComposeService(
        name=name,
        command=tuple(shlex.split(command) if isinstance(command, str) else command),
        environment={key: str(value) for key, value in raw.get("environment", {}).items()},
        volumes=dict(reversed(one.split(":")[:2]) for one in raw.get("volumes", []) if isinstance(one, str)),
        healthcheck=tuple(["/bin/sh", "-c", test[1]] if test[0] == "CMD-SHELL" else test[1:]),
        raw=raw,
    )


def _env_lines(pattern: str) -> dict[str, str]:
    return dict(re.findall(pattern, (ROOT / "deploy/.env.example").read_text(), re.MULTILINE))
