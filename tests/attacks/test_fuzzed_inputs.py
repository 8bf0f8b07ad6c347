"""Files that people write and records that others may have written: each has one outcome, its value or one refusal that names it,
and costs no more than its size. `make fuzz MINUTES=5` looks for other examples than those that are always the same.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fleet_operations.deploy import project_wheel
from forums.events.expression import parse
from forums.events.rules import load
from monitoring.api.entrance import JobBody, UrlsBody
from redis_components.errors import ConfigError
from redis_components.server.printable import masked_text, masked_values
from tests.support.cpu_time import least_cpu_s
from tests.support.examples import examples
from workers.fleet.sizes import limits_in_file, services_in_file
from workers.process.stat_metrics import is_named
from workers.state.beats import schedule_in_file
from workers.state.jobs import Jobs
from workers.state.services import Deployments, Services
from workers.targets import parse_target

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", examples(40)))
MINUTES = float(os.environ.get("FUZZ_MINUTES", "0"))
MOST_S = 3.0
"""For one input of some hundred bytes, also on a machine that is busy."""

ODD = st.sampled_from(
    (
        *("", "\0", "\x1b[31m", "a\nb", "../x", "-r x", "\u202e", "\ud800", "x" * 5000, "汉字"),
        *("'", '"', "%(x)s", "${X}", "{x}"),
    )
)
TEXT = ODD | st.text(max_size=20)
LEAF = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXT
KEYS = (
    "services spider project size arguments settings memory_soft_mb memory_hard_mb max_age max_pages start_key items_key consumer"
    " rules outputs match kind url secret batch timeout_s allow_private path max_length alarms begin books shop webhook notify"
    " limits schedule rate burst quiet weight task every_s cron args kwargs enabled fleet"
    " current previous versions name file digest at by note id service declaration crawlers urls state figures unique reason"
)
NAME = st.sampled_from(KEYS.split()) | TEXT
TREE = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAME, inner, max_size=5), max_leaves=20)
NESTS = (("[", ""), ('{"a":', ""), ("a=[", ""), ("(", ""), ("not ", ""), (".a", " = 1"))
DEEP = st.tuples(st.sampled_from(NESTS), st.integers(100, 5000)).map(
    lambda one: f"a{one[0][0] * one[1]}{one[0][1]}"[one[1] % 2 :]
)


def as_toml(value: Any) -> str:
    """An inline value: TOML has JSON's texts and lists; tables are written with `=`."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {as_toml(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps("" if value is None else value)


def _lines(tree: dict[str, Any]) -> str:
    return "\n".join(f"{json.dumps(name)} = {as_toml(value)}" for name, value in tree.items())


TABLES = st.dictionaries(NAME, TREE, max_size=4).map(_lines)
NESTED = st.tuples(st.sampled_from(["services", "rules", "outputs"]), NAME, TABLES).map(
    lambda one: f"[{one[0]}.{json.dumps(one[1])}]\n{one[2]}"
)
TOML = st.lists(NESTED | TABLES, max_size=3).map("\n".join) | DEEP | st.text(max_size=60)
JSON = TREE.map(json.dumps) | DEEP
TERMS = ("and", "or", "not", "(", ")", "title:", "author:", "site:", "type:", "/", "/(a+)+$/", '"', "rtx*", "显卡", "row:x")
WORDS = st.lists(st.sampled_from(TERMS) | TEXT, max_size=12).map(" ".join)
LINES = ("[settings]", "[DEFAULT]", "default = shop.settings", "default = ../x", " x", "[", "=")
CFG = st.lists(st.sampled_from(LINES) | TEXT, max_size=6).map("\n".join)
TARGETS = TEXT | st.sampled_from(["http://", "https://[", "sqlite:///\0", "jsonl:"])


def written(name: str, read: Callable[[Path], Any]) -> Callable[[Path, str], Any]:
    def to_file(folder: Path, text: str) -> Any:
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        return read(folder)

    return to_file


NO_REDIS: Any = None  # parsers send no command


def as_bytes(read: Callable[[str, bytes], Any]) -> Callable[[Path, str], Any]:
    return lambda _folder, text: read("books", text.encode("utf-8", "surrogatepass"))


def api_body(_folder: Path, text: str) -> None:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):  # FastAPI answers those; not only JSONDecodeError: a number of 5,000 digits
        return
    for kind in (JobBody, UrlsBody):
        with suppress(ValidationError):
            kind.model_validate(body)


def metrics_of_record(_folder: Path, text: str) -> None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # not only JSONDecodeError: a number of 5,000 digits
        return
    is_named(text, found if isinstance(found, dict) else {text: "counter"})


def masked(_folder: Path, text: str) -> None:
    masked_text(text)
    masked_values({text: text})


def every_table(folder: Path) -> None:
    with patch.dict(os.environ, TRAWL_CONFIG=str(folder / "trawl.toml")):
        schedule_in_file()
        services_in_file()
        limits_in_file()
        load()


READERS: dict[str, tuple[st.SearchStrategy[str], Callable[[Path, str], Any], tuple[type[Exception], ...]]] = {
    "trawl.toml": (TOML, written("trawl.toml", every_table), (ConfigError,)),
    "filter": (WORDS | DEEP, lambda _, text: parse(text), (ConfigError,)),
    "scrapy.cfg": (CFG, written("scrapy.cfg", project_wheel.settings_module), (ConfigError,)),
    "requirements.txt": (
        CFG,
        written("requirements.txt", lambda folder: project_wheel._requirements(folder / "requirements.txt")),
        (ConfigError,),
    ),
    "version": (JSON, as_bytes(Deployments(NO_REDIS).parse), (ValueError,)),
    "declared service": (JSON, as_bytes(Services(NO_REDIS).parse), (ValueError,)),
    "job": (JSON, as_bytes(Jobs(NO_REDIS).parse), (ValueError,)),
    "consumer": (TARGETS, lambda _, text: parse_target(text), (ConfigError,)),
    "API body": (JSON, api_body, ()),
    "metrics of a record": (JSON | TEXT, metrics_of_record, ()),
    "shown arguments": (JSON | TEXT | TREE.map(repr), masked, ()),
}


@pytest.mark.timeout(300 + MINUTES * 90)
@pytest.mark.parametrize("name", READERS)
def test_any_text_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    texts, read, refusals = READERS[name]

    def run(examples: int, same: bool) -> None:
        @settings(max_examples=examples, derandomize=same, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(texts)
        def check(text: str) -> None:
            def tried() -> None:
                with suppress(*refusals):
                    read(tmp_path, text)

            assert least_cpu_s(tried, MOST_S) < MOST_S

        check()

    run(EXAMPLES, True)
    end = time.monotonic() + MINUTES * 60
    while time.monotonic() < end:
        run(2000, False)
