"""`trawl init`: a project of your own, outside Trawl's checkout."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from cli.views.options import AsJson
from cli.views.output import echo, print_json
from redis_components.errors import ConfigError

PACKAGE = re.compile(r"[a-z_][a-z0-9_]*")


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; by default this one.", show_default=False)] = Path(),
    package: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the package with your spiders; by default the folder's.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make a project: `trawl.toml`, site files, settings, a package for your own spiders, `.env`, an override for Docker Compose.

    Commands that run in the folder use its `sites/`, `.env` and `data/`. Nothing that exists is overwritten: where a file of the
    project is there already, nothing is written.

    **Examples:**

        trawl init forums
        trawl init . --package news_spiders
    """
    name = _package_of(folder) if package is None else package
    if not _is_free(name):
        raise ConfigError(f"--package {name}: must be lower-case letters, digits and _, and not one of Trawl's: choose another")
    files = _files(name)
    if there := [path for path in files if (folder / path).exists()]:
        raise ConfigError(f"{folder / there[0]} exists already: name another folder, or move it away; nothing was written")
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        (folder / ".env").chmod(0o600)  # it will hold passwords
    except OSError as error:
        unwritten = f"{error.filename} cannot be written ({error.strerror})"
        raise ConfigError(f"{unwritten}: name a folder that this user may write") from error
    if as_json:
        print_json({"folder": str(folder), "package": name, "files": list(files)})
        return 0
    echo(f"{folder}: {', '.join(files)}")
    where = "" if folder == Path() else f"cd {shlex.quote(str(folder))}, then "
    echo(f"Next, for a forum: {where}trawl watch forum.example.org")
    spiders = f"write one into {name}/spiders, then trawl services add SPIDER and trawl up; a new version: trawl deploy"
    echo(f"For your own spiders: {where}{spiders} (docs/own-spiders.md)")
    echo("trawl doctor checks everything")
    return 0


_TAKEN = frozenset({"redis_components", "workers", "forums", "tasks", "cli", "monitoring", "demo", "sites", "data", "trawl"})


def _is_free(name: str) -> bool:
    return bool(PACKAGE.fullmatch(name)) and name not in _TAKEN


def _package_of(folder: Path) -> str:
    """Return a name after the folder, if that is free."""
    name = re.sub(r"[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_")
    return next((one for one in (name, f"{name}_spiders") if name and _is_free(one)), "my_spiders")


def _files(package: str) -> dict[str, str]:
    """Return the text of each file, by its place in the project."""
    places = {
        ".env": "env.txt",
        "trawl.toml": "trawl.toml",
        "compose.override.yml": "compose.override.yml",
        "sites/README.md": "sites.md",
        f"{package}/settings.py": "settings.py.txt",
        f"{package}/spiders/__init__.py": "spiders.py.txt",
    }
    written = {place: template(name).format(package=package) for place, name in places.items()}
    return {
        "scrapy.cfg": f"[settings]\ndefault = {package}.settings\n",
        ".gitignore": ".env\ndata/\n__pycache__/\n",
        f"{package}/__init__.py": "",
        **written,
    }


def template(name: str) -> str:
    """Return a file of `cli/templates`."""
    return (Path(__file__).parents[1] / "templates" / name).read_text("utf-8")
