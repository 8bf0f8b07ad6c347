"""What needs the fleet's installation: site files are read with Scrapy and lxml, which the exporter's own image does not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redis_components.errors import TrawlError


class NotInstalled(TrawlError):
    """A package of the fleet is not installed where this exporter runs; the message says what to use there."""


@contextmanager
def whole_installation(command: str) -> Iterator[None]:
    """Around imports; `command` does the same. Raises NotInstalled where a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise NotInstalled(
            f"this exporter is installed without {error.name}, which reads site files: use `{command}` where workers run"
        ) from error
