"""Compiles the modules that each role imports: `python packaging/bytecode.py [--whole]`, with the interpreter of the
installation.

`make install` and the Dockerfile run it after an installation without bytecode: a third of the installed modules is ever
imported. `--whole` also compiles all of the packages that import lazily: a container's root is read-only, so modules without
bytecode would be compiled again at each start of a process.
"""

import compileall
import importlib
import sys
import sysconfig
from pathlib import Path

ROLES = (
    "tasks",
    "celery.bin.celery",
    "celery.apps.worker",
    "celery.apps.beat",
    "celery.concurrency.prefork",
    "flower.command",
    "monitoring.exporter",
    "cli.main",
    "workers.crawler.__main__",
    "workers.crawler.process",
    "forums.writer",
    "forums.storage",
    "demo.forum",
    "uvloop",
    "psycopg",
    "pymysql",
    "sqlalchemy.dialects.sqlite",
    "sqlalchemy.dialects.mysql",
    "sqlalchemy.dialects.postgresql",
)
WHOLE = ("redis_components", "trawl_fleet", "scrapy", "celery", "kombu", "billiard", "redis", "parsel", "itemadapter")


def main(whole: bool) -> int:
    """Import the roles, and compile the whole packages if asked; return 1 if a role cannot be imported."""
    failed = 0
    sys.dont_write_bytecode = False  # PYTHONDONTWRITEBYTECODE is about those who run, not about an installation
    for name in ROLES:
        try:
            importlib.import_module(name)
        except Exception as error:
            sys.stderr.write(f"{name} cannot be imported: {error!r}\n")
            failed += 1
    packages = Path(sysconfig.get_path("purelib"))
    for name in WHOLE if whole else ():
        failed += (packages / name).is_dir() and not compileall.compile_dir(packages / name, quiet=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(whole="--whole" in sys.argv[1:]))
