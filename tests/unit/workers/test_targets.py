"""The table of targets: everything that is said of a kind, and what a kind may write, follows from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleet_operations.consumers.consume import SinkOptions, open_sink
from redis_components.errors import ConfigError
from workers.targets import KINDS, TargetKind, check_place, parse_target

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_kind_is_parsed_and_shown_as_the_table_has_it(kind: TargetKind) -> None:
    for form in kind.form.removeprefix("a database such as ").split(", "):
        example = form.replace("BUCKET", "shop")
        assert parse_target(example).kind is kind
    assert all(scheme in (DOCS / "services.md").read_text() for scheme in kind.schemes[:1])
    with pytest.raises(ConfigError) as error:
        parse_target("nothing")
    assert kind.form in str(error.value)
    assert kind.form.split(", ")[0] in " ".join(next(DOCS.rglob("cli.md")).read_text().split())


def test_each_kind_opens_its_sink(tmp_path: Path) -> None:
    places = {
        "jsonl": f"jsonl:{tmp_path / 'items.jsonl'}",
        "s3": "s3://shop/items",
        "database": f"sqlite:///{tmp_path / 'items.db'}",
    }
    assert set(places) == {kind.name for kind in KINDS}
    for place in places.values():
        open_sink(parse_target(place), SinkOptions(table="items")).close()


def test_a_kind_that_names_no_path_of_its_targets_is_not_taken_from_redis() -> None:
    target = parse_target("postgresql://x.example/in")
    check_place(target)
    with pytest.raises(ConfigError, match="is declared in Redis"):
        check_place(replace(target, kind=replace(target.kind, path=None)))
