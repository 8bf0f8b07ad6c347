"""Folder of one run of the demo, with its own database, Redis and logs, so that the user's data is never touched."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from redis_components.embedded import data_dir, private_files
from redis_components.errors import TrawlError
from redis_components.server.variables import ENV_FILE

KEPT_RUNS = 3  # older ones are removed when a new run begins
MARK = "TRAWL_DEMO_RUN"  # environment variable of every process of a run
_NAME = re.compile(r"\d{8}-\d{6}(-\d+)?")
_SITES = Path(__file__).resolve().with_name("sites")  # the demo's forum alone: a demo must not crawl the user's sites
_KEPT_VARIABLES = ("TRAWL_DEMO_", "TRAWL_TEST_", "TRAWL_DEBUG", "TRAWL_REDIS_BIN")  # variables of no fleet


class RunFolderError(TrawlError):
    """The demo cannot write its folder; the message names it and the fix."""


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """`<data>/demo/<date>-<time>`."""

    path: Path

    @classmethod
    def fresh(cls) -> RunFolder:
        """Create a new, empty folder, and remove the folders of old runs. Raises RunFolderError."""
        runs = data_dir() / "demo"
        try:
            runs.mkdir(parents=True, exist_ok=True)
            _remove_old(runs)
            return cls(path=_new_folder(runs))
        except OSError as error:
            raise RunFolderError(
                f"cannot write to {runs} ({error.strerror}): make it writable, or set TRAWL_DATA_DIR to another folder"
            ) from error

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def database(self) -> Path:
        return self.path / "trawl.sqlite"

    @property
    def mark(self) -> str:
        """Mark of the run's processes: the full path, since another run elsewhere may have begun in the same second."""
        return str(self.path.resolve())

    @property
    def shown(self) -> str:
        """The folder relative to the working directory, for people."""
        return _from_here(self.path)

    def take_over_environment(self, forum_url: str, fleet: str) -> None:
        """Set the environment of this process, and of every one that it starts, to this folder and the demo's forum.

        Every setting of the user's fleet is dropped: its Redis, sites, database, tasks, limits.
        """
        for name in [name for name in os.environ if name.startswith("TRAWL_") and not name.startswith(_KEPT_VARIABLES)]:
            del os.environ[name]
        config = self.path.resolve() / "trawl.toml"
        config.touch()  # the user's fleet has another
        of_run = {
            ENV_FILE: "",  # this process has read it
            "TRAWL_DATA_DIR": str(self.path.resolve()),
            "TRAWL_SITES_DIR": str(_SITES),
            "TRAWL_CONFIG": str(config),
            "TRAWL_DEMO_URL": forum_url,
            "TRAWL_FLEET": fleet,
            "SCRAPY_SETTINGS_MODULE": "workers.settings",
        }
        os.environ.update({MARK: self.mark, **of_run})
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in of_run.items()]
        self._variables.write_text("".join(lines), "utf-8")

    @property
    def _variables(self) -> Path:
        """File with the same variables, for a shell in a demo that keeps running."""
        return self.path / "terminal.sh"

    @property
    def terminal(self) -> str:
        """Command that loads the variables into a shell."""
        return f". {shlex.quote(_from_here(self._variables))}"


def trawl_command() -> str:
    """Return the command `trawl` of this environment, relative to the working directory."""
    return _from_here(Path(sys.executable).with_name("trawl"))


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _new_folder(runs: Path) -> Path:
    name = datetime.now().strftime("%Y%m%d-%H%M%S")
    for suffix in ("", *(f"-{n}" for n in range(2, 100))):
        folder = runs / f"{name}{suffix}"
        try:
            folder.mkdir()
        except FileExistsError:  # another demo began in the same second
            continue
        (folder / "logs").mkdir()
        return folder
    raise FileExistsError(17, "a hundred demos began in one second", str(runs))


def _remove_old(runs: Path) -> None:
    finished = [folder for folder in runs.iterdir() if _NAME.fullmatch(folder.name) and not _in_use(folder)]
    for folder in sorted(finished)[: -KEPT_RUNS + 1 or None]:
        shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    keeper = folder / "redis" / "keeper.lock"
    return keeper.exists() and private_files.is_held(keeper)
