"""The interface from the fleet to the application on top of it: configuration folders and known sites.

`workers` import no application. TRAWL_APPLICATION names a module with the functions of `Application`; without it the forum
crawl is asked. An empty value means none: then no folder belongs to the configuration and only hosts are known as sites.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from workers.environment.variables import FleetApplication


class Application(Protocol):
    """A module that answers for an application. Each function is called often: it must be cheap."""

    def config_folders(self) -> Sequence[Path]:
        """Return folders whose files configure crawlers; a change there is worth another try of a slot that was given up."""

    def shared_files(self) -> Mapping[str, Path]:
        """Return files and folders of TOML files that all nodes of a fleet must have alike, by their description."""

    def site_names(self) -> Sequence[str]:
        """Return names that may stand in place of a host where a site is paused or drained."""

    def site_names_place(self) -> str:
        """Return the origin of `site_names`, for error messages."""


class NoApplication:
    """Stands in where TRAWL_APPLICATION is empty."""

    def config_folders(self) -> Sequence[Path]:
        """Return no folder."""
        return ()

    def shared_files(self) -> Mapping[str, Path]:
        """Return no file."""
        return {}

    def site_names(self) -> Sequence[str]:
        """Return no name."""
        return ()

    def site_names_place(self) -> str:
        """Return no place: only hosts are known."""
        return "this fleet"


def application() -> Application:
    """Return the application that TRAWL_APPLICATION names. Raises ImportError when there is no such module."""
    name = FleetApplication.read().application
    return cast("Application", import_module(name)) if name else NoApplication()
