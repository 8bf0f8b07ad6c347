"""The toy project's settings as a module in a folder of its own: of a package the fleet keeps a copy for each service that it
launches, and that of `tests.support.toy` would be all tests, for 0.2 s of CPU in each process of a pool.
"""

from __future__ import annotations

from tests.support.toy.settings import *  # noqa: F403 - settings are the module's names
