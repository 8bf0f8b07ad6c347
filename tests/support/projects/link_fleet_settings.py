"""Settings of the fleet of the link site, as a module that is in no package: see `toy_settings`."""

from __future__ import annotations

from tests.support.link_fleet_settings import *  # noqa: F403 - settings are the module's names
