"""How many files a process may open."""

from __future__ import annotations

import resource
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from redis_components.errors import ConfigError
from tests.support import warm_start
from tests.support.fleet import toy_environment
from workers.process import start_checks

INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("limits", "crawlers", "raised", "is_enough"),
    [
        ((1024, 4096), 200, 4096, True),
        ((1024, 1024), 200, None, False),
        ((1024, 1024), 16, None, True),
        ((256, 1_000_000), 200, start_checks.ENOUGH, True),
        ((256, INFINITE), 200, start_checks.ENOUGH, True),
        ((100_000, 100_000), 1000, None, True),
        ((INFINITE, INFINITE), 1000, None, True),
    ],
)
def test_a_process_raises_its_limit_and_refuses_where_that_is_not_enough(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], crawlers: int, raised: int | None, is_enough: bool
) -> None:
    set_: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: set_.append(new))
    too_few = pytest.raises(ConfigError, match=r"1,024 files may be open \(ulimit -n\), a worker with 200 crawlers needs 1,900")
    with nullcontext() if is_enough else too_few:
        start_checks.require_for_worker(crawlers)
    assert set_ == ([] if raised is None else [(raised, limits[1])])


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "code", "who"),
    [
        (["-m", "cli.main", "up", "--port-flower", "0", "--port-exporter", "0"], 2, "a worker with 4 crawlers needs 136"),
        (["-m", "celery", "-A", "tasks", "worker"], 1, "a worker with 4 crawlers needs 136"),
        (["-m", "workers.crawler", "toy"], 2, "a crawler needs 128"),
    ],
    ids=["trawl up", "worker", "crawler"],
)
def test_sixty_four_files_are_too_few_for_trawl_up_a_worker_and_a_crawler(
    command: list[str], code: int, who: str, redis_url: str, tmp_path: Path
) -> None:
    limited = ["bash", "-c", 'ulimit -n 64; exec "$@"', "bash", sys.executable, *command]
    environment = {**toy_environment(redis_url, tmp_path), "TRAWL_SITES_DIR": str(tmp_path)}
    done = warm_start.run(limited, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    *_, line = (done.stdout + done.stderr).splitlines()
    assert f"64 files may be open (ulimit -n), {who}: raise the limit (ulimit -Hn, LimitNOFILE)" in line
    assert "Traceback" not in done.stderr
