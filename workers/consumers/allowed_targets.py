"""Limits the places that a consumer may write to if its target comes from Redis, where other clients may write."""

from __future__ import annotations

from redis_components.embedded import data_dir
from redis_components.errors import ConfigError

from .targets import Target

_FIX = "name it with --to or in trawl.toml, or sign what is declared (TRAWL_SIGNING_KEY_FILE)"


def check_place(target: Target) -> None:
    """Raise ConfigError for a file outside of the data folder, and for a bucket: the login to it is this machine's. Addresses are
    checked where they are connected to.
    """
    if target.kind.path is None:
        raise ConfigError(
            f"{target.place!r:.200} is declared in Redis, and the login to it is this machine's: nothing was written; {_FIX}"
        )
    path = target.path
    if path is not None and not path.resolve().is_relative_to(data_dir().resolve()):
        raise ConfigError(
            f"{str(path)!r:.200} is declared in Redis and outside of the data folder {data_dir()}: nothing was written; if"
            f" that is meant, {_FIX}"
        )
