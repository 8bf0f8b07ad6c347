"""Stored forms of this version and of a later one: an unknown field is skipped (docs/decisions/0062-stored-forms.md)."""

from __future__ import annotations

import ast
import copy
import importlib
import json
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import pytest

from redis_components.codec import requests, values
from redis_components.server.untrusted_values import decoded
from redis_components.start_tasks.seeding import BadStartTask, read
from tests.support.sources import PACKAGES as ALL_PACKAGES
from tests.support.sources import ROOT, definitions_of, sources

PACKAGES = tuple(one for one in ALL_PACKAGES if one not in ("forum_reader", "demo"))
STRICT = {
    "redis_components.start_tasks.seeding.StartTask": "written by hand: a typing error is refused, a later `format` is not",
}
IN_MEMORY = {
    "workers.process.page_at_work.PageAtWork",
    "workers.raw_pages.store.Broken",
    "forums.sites.load._Known",
    "forums.sites.load._LastRead",
}
NEWER = "of_a_later_version"


def _declared() -> dict[str, type]:
    """Return every class that is a record by its bases: a Struct, or a JsonRecord."""
    found = {}
    for path, text in sources(PACKAGES).items():
        if "JsonRecord" not in text and "Struct" not in text:
            continue
        module = ".".join(Path(path).with_suffix("").parts)
        for node in definitions_of(text):
            bases = {ast.unparse(one) for one in node.bases} if isinstance(node, ast.ClassDef) else set()
            if bases & {"JsonRecord", "msgspec.Struct", "Struct"}:
                assert isinstance(node, ast.ClassDef)
                found[f"{module}.{node.name}"] = getattr(importlib.import_module(module), node.name)
    return found


RECORDS = _declared()


def _least(kind: Any) -> Any:
    """Return the smallest plain value of a type."""
    about = msgspec.inspect.type_info(kind) if not isinstance(kind, msgspec.inspect.Type) else kind
    match about:
        case msgspec.inspect.StructType(fields=fields, array_like=array_like, tag=tag, tag_field=tag_field):
            needed = {one.encode_name: _least(one.type) for one in fields if one.required}
            return [_least(one.type) for one in fields] if array_like else needed | ({tag_field: tag} if tag_field else {})
        case msgspec.inspect.DataclassType(fields=fields):
            return {one.encode_name: _least(one.type) for one in fields if one.required}
        case msgspec.inspect.UnionType(types=types):
            return _least(types[0])
        case msgspec.inspect.LiteralType(values=found):
            return found[0]
        case msgspec.inspect.EnumType(cls=cls):
            return next(iter(cls)).value
        case msgspec.inspect.IntType(ge=ge) | msgspec.inspect.FloatType(ge=ge):
            return ge or 0
        case msgspec.inspect.Metadata(type=inner):
            return _least(inner)
    plain: dict[type, Any] = {
        msgspec.inspect.StrType: "a", msgspec.inspect.BoolType: False, msgspec.inspect.NoneType: None,
        msgspec.inspect.BytesType: "", msgspec.inspect.DateTimeType: "2026-01-01T00:00:00Z",
    }  # fmt: skip
    if type(about) in plain:
        return plain[type(about)]
    return {} if isinstance(about, msgspec.inspect.DictType) else []


@pytest.mark.parametrize("name", sorted(RECORDS.keys() - IN_MEMORY - STRICT.keys()))
def test_a_record_with_a_field_of_a_later_version_is_read(name: str) -> None:
    kind = RECORDS[name]
    stored = _least(kind)
    later = [*stored, 1] if isinstance(stored, list) else stored | {NEWER: {"any": ["thing"]}}
    assert decoded(json.dumps(later), kind) == decoded(json.dumps(stored), kind)


BEFORE: dict[str, Any] = json.loads((ROOT / "tests/fixtures/stored_by_49295b45.json").read_text())
"""A record of each kind with all its fields, as the version 49295b45 wrote it."""
GONE = {
    "Autoscaled": {"memory.trial", "memory.ceiling", "memory.ceiling_at", "memory.ceiling_s"},
    "NodeRecord": {"clock_off_s", "config"},
    "CrawlRecord": {"redis", "keys.item_groups"},
    "ServiceRecord": {"groups"},
    "Job": {"urls", "declaration.groups"},
    "CrawlerRecord": {"redis", "namespace", "config", "failed_configs"},
    "StoredEntry": {"signature"},
    "ForumTask": {"depth", "traceparent"},
    "PostTask": {"traceparent", "pages"},
    "Sample": {"crawlers"},
    "Scan": {"seen"},
    "Reading": {"was", "changed"},
    "RecentMessage": {"title"},
}
"""Nothing reads them any more; a RecordStore takes the second off, checks it and puts it on again (`test_signing.py`)."""
NOT_READ = {"BackState", "CrawlerSample", "Drift", "RecentState", "SeenMessage", "ThreadWas", "Totals"}
"""Parts of looks at newest messages and back, of checks that asked for what has changed, which read all, of samples, and of
what was learnt about pages.
"""


@pytest.mark.parametrize("name", sorted(BEFORE.keys() - NOT_READ))
def test_a_record_of_the_version_before_is_read_with_all_its_fields(name: str) -> None:
    (kind,) = {kind for known, kind in RECORDS.items() if known.endswith(f".{name}")}
    read = json.loads(msgspec.json.encode(decoded(json.dumps(BEFORE[name]), kind)))
    if isinstance(read, dict):
        before = copy.deepcopy(BEFORE[name])
        for gone in GONE.get(name, set()):
            *parts, field = gone.split(".")
            del reduce(dict.__getitem__, parts, before)[field]
        assert {field: read[field] for field in before} == before
    else:
        assert read[: len(BEFORE[name])] == BEFORE[name]


def test_every_strict_record_is_listed() -> None:
    configs = {name: getattr(kind, "__struct_config__", None) for name, kind in RECORDS.items()}
    assert {name for name, config in configs.items() if config and config.forbid_unknown_fields} == STRICT.keys()


def test_no_reader_hands_stored_fields_to_a_constructor() -> None:
    """`Kind(**json.loads(text))` would refuse what a later version adds."""
    found = [
        f"{path}:{node.lineno}"
        for path, text in sources(PACKAGES).items()
        if "**" in text and ("loads(" in text or "decode(" in text)  # parsing all of them takes a second
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for one in node.keywords
        if one.arg is None and isinstance(one.value, ast.Call) and ast.unparse(one.value.func).endswith((".loads", ".decode"))
    ]
    assert found == []


def test_a_request_with_a_field_of_a_later_version_is_read() -> None:
    assert requests.read(values.dumps({"u": "http://a/", "later": 1})).u == "http://a/"


def test_a_start_task_of_a_later_format_is_read_and_a_typing_error_is_not() -> None:
    assert read('{"url": "http://a/", "format": 2, "later": 1}').url == "http://a/"
    for wrong in ('{"url": "http://a/", "later": 1}', '{"url": "http://a/", "format": 1, "later": 1}'):
        with pytest.raises(BadStartTask, match="unknown field 'later'"):
            read(wrong)
