"""A kind of output is one class: from it come the check of `trawl.toml`, the help, the reference and the publisher's output."""

from __future__ import annotations

import gc
import runpy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import Field

from forums.events.alerts import examples
from forums.events.outputs import Delivery, OutputOptions, Taken
from forums.events.rules import kinds
from forums.storage.read.event_reader import Event
from redis_components.errors import ConfigError
from tests.support.event_rules import rules_of

ROOT = Path(__file__).parents[4]
OUTPUTS = runpy.run_path(str(ROOT / "packaging/references.py"))["REFERENCES"]["outputs"]


@pytest.fixture
def made_up() -> Iterator[None]:
    """A kind that is in no file of Trawl, while the test runs."""

    class PagerOptions(OutputOptions):
        """A pager of a made-up kind."""

        targets: ClassVar[Mapping[str, str]] = {"pager:": "pager:4711"}
        kind: Literal["pager"]
        number: str = Field(description="number of the pager")
        pin: str = Field(description="its PIN")

        def secrets(self) -> Mapping[str, int]:
            return {"pin": 4}

        def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:
            return Taken(number=len(events), refused=[(one, f"pager {self.number} of {to.name}, {self.pin}") for one in events])

    yield
    del PagerOptions
    gc.collect()  # a class is in a cycle with itself
    assert "pager" not in kinds()


def table(pin: str = "${PAGER_PIN}") -> str:
    return f'[outputs.night]\nkind = "pager"\nnumber = "4711"\npin = "{pin}"\n'


@pytest.mark.usefixtures("made_up")
def test_a_made_up_kind_is_known_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER_PIN", "123456")
    options: Any = rules_of(table()).outputs["night"]
    event: Any = object()
    assert options.deliver(Delivery("night", None, None), [event]).refused == [(event, "pager 4711 of night, 123456")]
    assert "pager:4711" in examples()
    assert "## `pager`\n\nA pager of a made-up kind.\n\nFor `trawl alert --to`: `pager:4711`" in OUTPUTS()
    assert "| `number` | text | required | number of the pager |" in OUTPUTS()


@pytest.mark.usefixtures("made_up")
def test_its_keys_are_checked() -> None:
    faults = {
        table(pin="in the file"): "outputs.night.pin: a secret must not stand in the file",
        table(): "PAGER_PIN is not set",
        table().replace("number", "nummer"): "outputs.night.nummer: there is no such key; did you mean 'number'?",
        table().replace('"pager"', '"pagr"'): "did you mean 'pager'?",
    }
    for text, said in faults.items():
        with pytest.raises(ConfigError) as caught:
            rules_of(text)
        assert said in str(caught.value)


def test_every_fault_is_reported_at_once() -> None:
    text = '[rules.a]\nmatch = "("\n[outputs.b]\nkind = "mail"\n[outputs.c]\nkind = "stream"\nmax_length = 3\nrules = ["x"]\n'
    with pytest.raises(ConfigError) as caught:
        rules_of(text)
    assert [line.partition(": ")[2].partition(":")[0] for line in str(caught.value).splitlines()] == [
        "rules.a.match",
        "outputs.b.kind",
        "outputs.c.max_length",
    ]
