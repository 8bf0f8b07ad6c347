"""Kinds of targets of items, in one table (`jsonl:PATH`, a bucket, a URL of SQLAlchemy's), and the consumer that a spider has.

A spider declares its consumer by the attribute `item_consumer`. Without one its items are for the user to consume, and nothing of
the fleet reads, trims or drops them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from redis_components.embedded import data_dir
from redis_components.errors import ConfigError, did_you_mean
from workers.application import application


@dataclass(frozen=True, kw_only=True)
class TargetKind:
    """One kind of targets."""

    name: str
    schemes: tuple[str, ...]
    pattern: re.Pattern[str]
    """Pattern of a whole target; its group `place` is what the sink gets."""
    form: str
    """The words of help and messages."""
    sink: str
    """The function that opens it, as `pkgutil.resolve_name` finds it: its module brings SQLAlchemy and the like."""
    has_rows: bool = False
    """Items are rows, which a key finds again."""
    path: Callable[[str], Path | None] | None = None
    """The file of a target on this machine, None for a target without one. A target of a kind without this function
    may not be declared in Redis."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Destination of items."""

    kind: TargetKind
    place: str
    """A path for files, a URL for the others. It may hold a password."""

    @property
    def path(self) -> Path | None:
        """The file that is written on this machine."""
        return self.kind.path(self.place) if self.kind.path else None

    def below(self, folder: Path) -> Target:
        """Return the target with an absolute path. A relative one is taken from `folder`, or from the current folder where that
        leads into the data folder.
        """
        path = self.path
        if path is None or path.is_absolute():
            return self
        here = path.absolute()
        whole = str(here if here.resolve().is_relative_to(data_dir().resolve()) else folder / path)
        return replace(self, place=_with_database(self.place, whole) if self.kind.has_rows else whole)


def _database_file(url: str) -> Path | None:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    if not url.startswith("sqlite"):
        return None
    try:
        name = make_url(url).database or ""
    except (ArgumentError, ValueError):
        return None  # the consumer reports it
    # SQLite takes `file:` with options, which could be any path: as a path it is outside.
    return Path("/") / name if name.startswith("file:") else Path(name) if name not in ("", ":memory:") else None


def _with_database(url: str, path: str) -> str:
    from sqlalchemy.engine import make_url

    return make_url(url).set(database=path).render_as_string(hide_password=False)


_DATABASES = ("sqlite", "postgresql", "mysql", "mariadb")
KINDS = (
    TargetKind(
        name="jsonl",
        schemes=("jsonl",),
        pattern=re.compile(r"jsonl:(?P<place>\s*+\S.*)", re.DOTALL),
        form="jsonl:PATH",
        sink="fleet_operations.consumers.files:opened",
        path=Path,
    ),
    TargetKind(
        name="s3",
        schemes=("s3",),
        pattern=re.compile(r"(?P<place>s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s?#@\\]{0,500})?)", re.ASCII),
        form="s3://BUCKET/PREFIX",
        sink="fleet_operations.consumers.parts:opened",
    ),
    TargetKind(
        name="database",
        schemes=_DATABASES,
        pattern=re.compile(rf"(?P<place>({'|'.join(_DATABASES)})(\+\w+)?://.*)", re.ASCII | re.DOTALL),
        form="a database such as sqlite:///PATH",
        sink="fleet_operations.consumers.database_rows:opened",
        has_rows=True,
        path=_database_file,
    ),
)
"""All kinds. Help, messages, checks and tests follow from this table; files of a run may be in a folder or a bucket alone."""
FORMS = f"{', '.join(one.form for one in KINDS[:-1])}, or {KINDS[-1].form}"


def is_target(text: str) -> bool:
    """Return True if `parse_target` accepts the text."""
    return any(one.pattern.fullmatch(text) for one in KINDS)


def parse_target(text: str) -> Target:
    """Parse a target. Raises ConfigError, which shows nothing behind a URL's scheme: it may hold a password."""
    for kind in KINDS:
        if found := kind.pattern.fullmatch(text):
            return Target(kind=kind, place=found["place"])
    scheme, colon, _ = text.partition(":")
    shown = f"{scheme}:…" if colon else text
    hint = did_you_mean(scheme, [scheme for kind in KINDS for scheme in kind.schemes])
    raise ConfigError(f"{shown!r:.100} is not a target: write {FORMS}{hint}")


_FIX = "name it with --to or in trawl.toml, or sign what is declared (TRAWL_SIGNING_KEY_FILE)"


def check_place(target: Target, origin: str = "declared in Redis", fix: str = _FIX) -> None:
    """Raise ConfigError for a file outside of the data folder, and for a bucket: the login to it is this machine's."""
    if target.kind.path is None:
        raise ConfigError(f"{target.place!r:.200} is {origin}, and the login to it is this machine's: nothing was done; {fix}")
    path = target.path
    if path is not None and not path.resolve().is_relative_to(data_dir().resolve()):
        raise ConfigError(
            f"{str(path)!r:.200} is {origin} and outside of the data folder {data_dir()}: nothing was done; if it is meant, {fix}"
        )


NO_CONSUMER = "none"
"""Consumer of a service whose items no consumer of the fleet takes, even if its spider declares one."""


def consumer_of(spider: object) -> str:
    """Return the consumer that a spider (or its class) declares; "" for none. Raises ConfigError for an unknown consumer."""
    declared = getattr(spider, "item_consumer", "")
    if declared and declared not in (known := application().consumers()):
        name = getattr(spider, "name", spider)
        raise ConfigError(
            f"{name}: item_consumer = {declared!r:.100} does not exist; known: {', '.join(map(repr, known)) or 'none'};"
            " leave it out to consume the items yourself"
        )
    return declared or ""
