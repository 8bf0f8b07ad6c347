"""Objects of a project's classes: stored as path and fields, made again without calling anything of the class."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import attrs
import pytest
from scrapy import Field, Item, Spider

from redis_components.codec import values
from redis_components.codec import values as project_code
from redis_components.errors import Undecodable, Unserializable

CALLS: Counter[str] = Counter()


class Row(Item):
    url = Field()


@dataclasses.dataclass
class Data:
    word: str
    deep: Any = None

    def __post_init__(self) -> None:
        CALLS["made"] += 1


@dataclasses.dataclass(frozen=True, slots=True)
class Slots:
    word: str


@attrs.define
class Attrs:
    word: str
    _own: int = 0


class PageMethod:
    def __init__(self, method: str, *args: Any) -> None:
        self.method, self.args = method, args


class Plain:
    def __init__(self) -> None:
        self.word = "x"


class Words(dict[str, str]):
    pass


class Books(Spider):
    name = "books"


@pytest.fixture(autouse=True)
def _loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_code, "_known", {})
    project_code.learn(Books)


def there_and_back(value: Any) -> Any:
    return values.loads(values.dumps({"t": values.exact({"v": value}, "meta")}))["t"]["v"]


@pytest.mark.parametrize(
    "value",
    [
        Row(url="http://a/"),
        Row(),
        Data("x", deep=[Slots("y"), {"z": (Row(url=b"q"),)}]),
        Slots("x"),
        Attrs("x", 7),
    ],
)
def test_an_object_comes_back_equal_and_of_its_class(value: Any) -> None:
    CALLS.clear()
    found = there_and_back(value)
    assert type(found) is type(value)
    assert found == value
    assert not CALLS, "nothing of the class is called"


def test_a_page_method_comes_back_with_its_arguments() -> None:
    found = there_and_back(PageMethod("click", "a.next", 3))
    assert (type(found), found.method, found.args) == (PageMethod, "click", ("a.next", 3))


def with_more() -> Data:
    made = Data("x")
    made.more = 1  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("value", [Plain(), Words(a="b"), with_more(), Row(url=object()), Books(), Counter("a")])
def test_what_cannot_come_back_exactly_is_refused(value: Any) -> None:
    with pytest.raises(Unserializable, match=r"^meta\['v'\].*cannot store"):
        values.exact({"v": value}, "meta")


@pytest.mark.parametrize(
    "stored",
    [
        ["subprocess.Popen", {}],
        [f"{__name__}.Plain", {"word": "x"}],
        [f"{__name__}.Data", {"word": "x"}],
        [f"{__name__}.Row", {"other": 1}],
        [f"{__name__}.Row", [1]],
        [f"{__name__}.Row"],
        [7, {}],
    ],
)
def test_a_payload_names_no_other_class_and_no_other_fields(stored: list[Any]) -> None:
    payload = values.dumps({"t": values.msgspec.msgpack.Ext(13, values.msgspec.msgpack.encode(stored))})
    with pytest.raises(Undecodable):
        values.loads(payload)


def test_a_program_without_a_crawl_shows_the_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = values.dumps({"t": values.exact(Row(url="u"), "meta")})
    monkeypatch.setattr(project_code, "_known", {})
    assert values.loads(payload)["t"] == {"class": f"{__name__}.Row", "url": "u"}
