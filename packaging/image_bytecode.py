"""Makes the bytecode that the image carries: of what each role imports, and all of the packages that import lazily.

Run by the Dockerfile with the image's own interpreter. A container's root cannot be written, so what has none here is
compiled again at each start of a process; all of it would be three times as large.
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


def main() -> int:
    """Import the roles, compile the whole packages; 1 where a role cannot be imported."""
    failed = 0
    for name in ROLES:
        try:
            importlib.import_module(name)
        except Exception as error:
            sys.stderr.write(f"{name} cannot be imported in the image: {error!r}\n")
            failed += 1
    packages = Path(sysconfig.get_path("purelib"))
    for name in WHOLE:
        failed += not compileall.compile_dir(packages / name, quiet=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
