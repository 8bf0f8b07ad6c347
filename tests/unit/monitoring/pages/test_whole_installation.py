"""The exporter's own image holds neither Scrapy nor Celery (Dockerfile, target `exporter`)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from monitoring.forums.search import NotInstalled, whole_installation

OF_THE_FLEET = ("scrapy", "twisted", "lxml", "parsel", "celery", "kombu", "aiohttp", "dateparser", "regex", "typer")


@pytest.mark.processes
def test_the_exporter_loads_nothing_that_only_crawlers_need() -> None:
    code = f"import monitoring.app, monitoring.exporter, sys; print(*sorted({set(OF_THE_FLEET)} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_what_needs_site_files_says_where_it_can_be_done() -> None:
    with (
        pytest.raises(NotInstalled, match="without no_such_package, which reads site files: use `trawl seed` where"),
        whole_installation("trawl seed"),
    ):
        import no_such_package  # noqa: F401  # type: ignore[import-not-found]
