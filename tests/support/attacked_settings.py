"""The fleet's settings, with a watchdog that notices sooner."""

from workers.settings import *  # noqa: F403

WATCHDOG_TIMEOUT = 4
