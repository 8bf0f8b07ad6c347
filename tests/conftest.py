"""Fixtures of every test.

- `redis_server`  the session's own server (`tests.support.redis_server.RedisServer`); do not stop it: make your own for faults
- `redis_client`  a `redis.Redis` on it, empty at the start of each test
- `redis_url`     the URL of the same empty server, for processes and for `connect(url)`
- `empty_sqlite`  a SQLite file with all tables, to be copied
- `no_process_left`  fails the test when a process started in it outlives it
- `processes` (marker)  the test starts processes; `make test-fast` leaves it out. In tests/unit a test without it may start none
- for all tests: TRAWL_DATA_DIR is a temporary folder, no `.env` is read, and the variables that name a Redis, a broker, a
  namespace or a database are unset, so that none touches the developer's own data; a test that needs other values uses
  `monkeypatch.setenv` or the `env` of its process
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from hypothesis import settings

from tests.support.examples import examples
from tests.support.forked_services import fork_forums
from tests.support.forked_workers import fork_workers, send_less
from tests.support.processes import none_left
from tests.support.redis_server import RedisServer

# The same examples in each run, however slow the machine is: a failure that comes and goes would be a flaky test. What was found
# once is pinned by @example.
settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=examples(100))
settings.load_profile("deterministic")


ROOM_FOR_FILES = 4 << 30
FIRST = ("faults", "attacks", "acceptance", "integration")  # folders whose tests wait for processes; all others follow
SECONDS = {  # that the tests of a file take in `make test`; of other files in these folders a few
    100: "politeness promises reading_apart",
    70: "forum_crawl supervisor_lives spoilt_redis wheels",
    50: "demo group_runs failover crawler_process quotas_of_runs held_crawls chaos odd_threads",
    35: "consume_parts cli_up mysql backup nodes_and_rolls publish reading embedded_faults deploy crawl_once innocent_site "
    "embedded_sharing watch clocks messages jobs page_age exchange_properties",
    25: "custom_classes search recent_messages scheduler_crawl scheduler_bad_input deaths new_site_of_others storage_write "
    "page_clients writer_faults beats fuzz_corpus alerts who_can_write_to_redis forum_process member_turns states "
    "hostile_site_live migrations health without_forums books private_addresses export",
}
SECONDS_OF = {f"test_{name}": seconds for seconds, names in SECONDS.items() for name in names.split()}

LONG = re.compile(  # left out of `make test`, where a shorter form or another variant of each stays; `make test-all` runs them
    r"""test_other_reactors\.py::.*\[(EPollReactor|False)\]
      | test_other_reactors\.py::test_a_crawl_that_never_starts.*\[SelectReactor\]
      | test_names\.py::test_a_spider_of_any_name.*\[source1-
      | test_other_reactors\.py::test_a_second_signal_.*\[SelectReactor\]
      | test_deaths\.py::.*\[(exit\ 1\ at\ start|node\ frozen\ and\ back|SIG(QUIT|TERM|KILL)\ worker|slot\ key\ deleted)\]
      | test_deaths\.py::.*\[(beat's\ lock\ deleted|beat\ killed|SIGKILL\ pool\ child|memory\ over\ its\ soft\ limit)\]
      | test_deaths\.py::.*\[(interpreter\ held|SIGSTOP\ crawler,\ its\ pool\ child\ killed|node\ killed)\]
      | test_chaos\.py::.*\[plain\]
      | test_deploy\.py::test_a_version_that_raises
      | test_refusing_redis\.py::.*same_processes\[(NOREPLICAS|READONLY|NOPERM|MISCONF)\]
      | test_marked_secrets\.py
      | test_processes_and_time\.py::.*snapshot
      | test_benchmarks_fleet\.py
      | test_documented_commands\.py
      | test_services_page\.py
      | test_page_trial\.py
      | test_pages_figures_of_boards\.py::.*\[10000\]
      | test_alerts_live\.py::test_(alerts_fire|that_redis)
      | test_prometheus_crawl\.py
      | test_deploy\.py::test_versions_with_other
      | test_benchmarks\.py::test_(a_crawler_is_compared|a_pause_and|the_fleets_settings|chains_are|every_request_and)
      | test_benchmarks\.py::test_(two_crawlers_share|start_tasks)
      | test_database_away\.py::.*before_anything_starts\[(blah|oracle|mysql|postgresql|http)
      | test_worker_choices\.py::test_a_crawlers_task_is_neither_stuck
      | test_scheduler_bad_input\.py::test_a_start_task_that_cannot_be_read.*\[(\[1\]|\]|\{"url":\ \])
      | test_failover\.py::.*loses_no_page_and_no_item\[cluster\]
      | test_politeness\.py::.*only_what_was_in_flight_arrives\[date\]
      | test_politeness\.py::.*where_crawlers_are_slower_than_it\[(delay|one\ at\ a\ time)
      | test_scheduler_unfinished\.py::.*when_it_is_killed\[lambda-redirects\]
      | test_service_redis\.py::test_(another_namespace|another_name_of)
      | test_service_keys\.py::test_a_pause_reaches_it
      | test_missing_threads\.py::.*\[comments-
      | test_forum_crawl\.py::test_a_thread_that_is_gone_is_reported
      | test_cli_node_capacity\.py::test_four_crawlers
      | test_service_redis\.py::.*another_redis_is_refused.*\[(params|host\ and\ port)\]
      | test_service_items\.py::test_a_hundred_thousand_items
      | test_forum_crawl\.py::test_without_a_detail_crawler.*\[10000\]
      | test_exchange_properties\.py::.*interleaving\[rolling\]
      | test_hostile_site_live\.py::.*\[tag\ of\ 60,000\ attributes\]
      | test_scheduler_bad_input\.py::test_a_setting_that_.*\[(SCHEDULER_(QUEUE|SERIALIZER|REQUEST)|REDIS_ITEMS)
      | test_scheduler_bad_input\.py::test_a_request_that_cannot_be_read.*\[(older|newer|unknown|cut)
      | test_innocent_site\.py::.*\[(?!nothing|page:\ rows|threads\ that\ redirect\ to\ the|messages|foreign|NOREP)
      | test_clocks\.py::.*\[(an\ hour\ ahead|a\ day)
      | test_standing_still\.py
      | test_database_failover\.py
      | test_private_addresses\.py::test_a_name_that_resolves.*\[(0\.0\.0\.0|10\.0\.0\.1|fd00::1|169\.254\.169\.254)\]
      | test_export\.py::test_memory_does_not_grow.*\[(mysql|postgresql)
      | test_export\.py::test_wrong_use_is_one_line.*\[(mysql|postgresql)-
      | test_publish\.py::.*loses_and_repeats_nothing\[(postgresql|mysql)-handed
      | test_exporter_process\.py::test_a_signal_ends_it.*\[2\]
      | test_fed_tasks\.py::test_whatever_happens.*\[[2-7]\]
      | test_benchmarks\.py::test_(every_dupefilter|rows_are_stored_and|nothing_is_missing_after)
      | test_graceful_life\.py
      | test_deaths\.py::.*\[Redis\ away\]
      | test_messages\.py::test_(a_task_that_runs_out_of_memory|garbage_where_kombu)
      | test_consume_parts\.py::test_a_consumer_of_objects_that_is_killed
      | test_held_crawls\.py::test_a_paused_site_falls_silent
      | test_scheduler_crawl\.py::test_(sigterm_finishes|a_callback_that_computes)
      | test_scheduler_unfinished\.py::.*when_it_is_stopped
      | test_crawl_once\.py::test_(a_worker_of_threads|a_process_does_not_grow)
      | test_writer_faults\.py::test_(killed_at_any_instant|two_writers_at_once).*\[(sqlite|mysql)\]
      | test_storage_open\.py::test_several_processes.*\[(postgresql|mysql)\]
      | test_states\.py::test_order_batches.*\[(postgresql|mysql)\]
      | test_custom_classes\.py::test_a_crawl_on_a_queue_of_the_users_own_is_held
      | test_wheels\.py::test_a_celery_application_of_others
      | test_secrets_of_one_site\.py::test_(a_place_that_is_also_allowed|a_cookie_that_a_site_sets)
      | test_private_addresses\.py::test_(a_site_file_or_the_operator|a_redirect_to_a_private_name)
      | test_exporter_process\.py::test_(it_starts_before|without_a_url|a_wrong_redis_url)
      | test_scheduler_crawl\.py::test_sigterm_in_the_middle
      | test_scrapy_redis_project\.py::test_the_project_gives_the_same
      | test_service_redis\.py::test_a_project_that_names_no_namespace
      | test_service_keys\.py::test_what_it_gave_up
      | test_politeness\.py::test_(a_quota_is_what|no_more_requests_are_open|each_request_is_counted.*\[quotas\ alone\])
      | test_demo\.py::test_ctrl_c_in_the_middle
      | test_deaths\.py::.*\[memory\ over\ its\ hard\ limit\]
      | test_what_crawlers_say\.py::test_a_worker_whose_terminal
      | test_migrate\.py::test_an_import_that_is_killed
      | test_migrations\.py::test_several_processes.*\[postgresql\]
      | test_scheduler_bad_input\.py::test_a_start_task_that_cannot_be_read.*\[(\\xff|\{"url":\ null)
      | test_acl_roles\.py::test_a_crawler_with_its_own_user
      | test_research\.py::test_(a_limit_of_depth|an_article_on|a_tree_has|no_payload)
      | test_politeness\.py::.*\[words\ of\ the\ release\ before\]
      | test_benchmarks\.py::test_what_a_thread
      | test_foreign_values\.py::.*\[(1e308||\[\])\]
      | test_dupefilters\.py::test_buckets_stay_so_small.*\[64\]
      | test_custom_queue\.py::test_whatever_happens.*\[([6-9]|1\d)\]
      | test_publish\.py::test_a_receiver_that_answers_without_end.*\[(postgresql|mysql)-
      | test_new_site\.py::test_new_threads_of_one_post.*-3\]
      | test_claim\.py::test_two_writers_at_one_time_share
      | test_new_site\.py::test_every_post_is_read_by.*\[(?!tables|blog|plain)[\w-]*-board\]""",
    re.VERBOSE,
)


def pytest_configure(config: pytest.Config) -> None:
    """Bytecode is kept, also where PYTHONDONTWRITEBYTECODE is set: an installation has that of most packages beside them, and
    compiling our own modules is a tenth of each start.
    """
    # A shell's background job ignores both, and what its tests start would not hear them either.
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    if os.environ.get("SHORT_TESTS"):
        _use_memory_for_files()
        # Nothing leaves the machine: reading its 140 authorities costs each process, and each connection to MariaDB, 0.02 s.
        os.environ["SSL_CERT_FILE"] = os.environ["SSL_CERT_DIR"] = os.devnull
    gc.set_threshold(10_000, 20, 20)  # the default, 700, costs a tenth of the tests that start no process
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if config.getoption("tx", None) and sys.platform == "linux" and not os.environ.get("COLD_STARTS"):
        fork_workers(config, len(config.option.tx))
    if hasattr(config, "workerinput"):
        send_less(config)


def _use_memory_for_files() -> None:
    """Temporary files lie in /dev/shm where it has room: the servers of tests sync thousands of them to a disk."""
    memory = Path("/dev/shm")
    with suppress(OSError):
        if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM_FOR_FILES:
            os.environ["TMPDIR"], tempfile.tempdir = str(memory), None


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What is collected stays to the end: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each xdist worker files of long tests first, for about the same time, the longest before the others, then short tests.

    `--dist worksteal` hands each of the workers one block of the list, and who is ready takes from the end of another's block.
    """
    folders = Path(__file__).parent
    folder_of = {path: path.relative_to(folders).parts[0] for path in {item.path for item in items}}
    if os.environ.get("SHORT_TESTS"):
        left_out = [item for item in items if LONG.search(item.nodeid)]
        if {*folder_of.values()} >= {*FIRST, "unit"}:
            _each_line_names_a_test(left_out)
            _each_name_is_a_files()
        config.hook.pytest_deselected(items=left_out)
        too_long = {id(item) for item in left_out}
        items[:] = [item for item in items if id(item) not in too_long]
    long: dict[Path, list[pytest.Item]] = {}
    short = []
    for item in items:
        if folder_of[item.path] in FIRST:
            long.setdefault(item.path, []).append(item)
        else:
            short.append(item)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    seconds = {path: _seconds(path, len(tests)) for path, tests in long.items()}
    blocks: list[list[pytest.Item]] = [[] for _ in range(workers)]
    length = [0.0] * workers
    for path in sorted(long, key=seconds.__getitem__, reverse=True):  # a file stays in one block: its tests share fixtures
        with_servers = path.parent.name == "storage"  # of databases, which each worker makes that needs them
        place = min(range(min(2, workers) if with_servers else workers), key=length.__getitem__)
        blocks[place].extend(long[path])
        length[place] += seconds[path]
    size = -(-len(items) // workers)
    for block in blocks:
        room = max(0, size - len(block))
        block.extend(short[:room])
        del short[:room]
    items[:] = [item for block in blocks for item in block] + short


def _seconds(path: Path, tests: int) -> float:
    return SECONDS_OF.get(path.stem, 3 + tests / 5)


def _each_line_names_a_test(left_out: list[pytest.Item]) -> None:
    """A test that was renamed would be in `make test` again, and nobody would be told."""
    for line in LONG.pattern.splitlines():
        one = line.strip().removeprefix("|")
        if one and not any(re.search(one, item.nodeid, re.VERBOSE) for item in left_out):
            raise pytest.UsageError(f"tests/conftest.py: no test has the name that LONG leaves out: {one.strip()}")


def _each_name_is_a_files() -> None:
    """A file that was renamed would come after those that take less, and the last worker be ready long after the others."""
    files = {path.stem for folder in FIRST for path in Path(__file__).with_name(folder).rglob("test_*.py")}
    if gone := SECONDS_OF.keys() - files:
        raise pytest.UsageError(f"tests/conftest.py: SECONDS names files that do not exist: {', '.join(sorted(gone))}")


@pytest.fixture(autouse=True)
def _environment_as_before() -> Iterator[None]:
    """What a command enters into its own environment for the processes that it starts (`trawl up` does) ends with its test."""
    before = _variables()
    yield
    after = _variables()
    for name in after.keys() - before.keys():
        del os.environ[os.fsdecode(name)]
    for name, value in before.items():
        if after.get(name) != value:
            os.environ[os.fsdecode(name)] = os.fsdecode(value)


def _variables() -> dict[bytes, bytes]:
    """Return the environment as it is kept, without what pytest itself changes: `dict(os.environ)` decodes each value."""
    kept = os.environ._data.copy()  # type: ignore[attr-defined]
    kept.pop(b"PYTEST_CURRENT_TEST", None)
    return kept


@pytest.fixture(scope="session", autouse=True)
def _nobody_elses_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TRAWL_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        environment.setenv("TRAWL_ENV_FILE", "")
        for name in ("TRAWL_REDIS_URL", "TRAWL_BROKER_URL", "TRAWL_NAMESPACE", "TRAWL_DATABASE_URL"):
            environment.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _forked_forums() -> None:
    fork_forums()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """The session's server, without persistence. For tests that stop, kill or freeze it: `with RedisServer(...) as server`."""
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def _redis_pool(redis_server: RedisServer) -> Iterator[redis.ConnectionPool]:
    """Connections of `redis_client`: to make one for each test would cost 2 ms, and 6 ms to compile its scripts again."""
    pool = redis.ConnectionPool.from_url(redis_server.url)
    yield pool
    pool.disconnect()


@pytest.fixture
def redis_client(_redis_pool: redis.ConnectionPool) -> Iterator[redis.Redis]:
    """A client of the session's server, which is empty now, but for scripts that it has compiled. FLUSHALL is right here only
    because the server is our own.
    """
    client = redis.Redis(connection_pool=_redis_pool)
    client.flushall()
    yield client
    client.close()
    if _redis_pool._in_use_connections:  # a thread of the test waits at one
        _redis_pool.disconnect()


@pytest.fixture
def redis_url(redis_server: RedisServer, redis_client: redis.Redis) -> str:
    """URL (with password) of the session's server, which is empty now."""
    return redis_server.url


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with all tables: copying it is cheaper than running the migrations for each test."""
    from forums.storage import Database  # half a second, which few tests need

    file = tmp_path_factory.mktemp("empty") / "trawl.sqlite"
    Database.from_url(f"sqlite:///{file}").open().close()
    return file


@pytest.fixture
def no_process_left() -> Iterator[None]:
    """Every process that the test starts must be gone within a minute; ask for it before fixtures that start processes."""
    with none_left():
        yield
