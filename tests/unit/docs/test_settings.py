"""`docs/reference/settings.md` names every setting and variable that is read, and none that is not."""

from __future__ import annotations

import re
from pathlib import Path

import scrapy.settings.default_settings

from cli.views.environment import groups
from redis_components.server.variables import IN_FILE, RENAMED
from tests.support.sources import PACKAGES as ALL_PACKAGES
from workers.environment.declaration import variable_name
from workers.environment.variables import COMPOSE

ROOT = Path(__file__).parents[3]
PACKAGES = [one for one in ALL_PACKAGES if one not in ("forum_reader", "demo")]
FILES = [*ROOT.glob("*.py"), *(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))]
CODE = "\n".join(path.read_text("utf-8") for path in FILES)
DECLARED = {variable_name(field) for group in groups() for field in group.declared()} | set(map(variable_name, COMPOSE))
SCRAPYS = set(dir(scrapy.settings.default_settings))
READ = re.compile(r"""(?:settings(?:\.get\w*\(|\[)|number_of\(settings, |object_of\((?:\w+\.)?\w+, )\s*"([A-Z_]+)\"""")
VARIABLE = re.compile(r"\bTRAWL_[A-Z_]*[A-Z]\b(?!_)")
PAGES = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/reference/*.md")]
OTHER_FILES = [ROOT / "docker-compose.yml", ROOT / "Dockerfile", ROOT / "deploy/.env.example", *PAGES]
OF_OTHERS = {"TRAWL_TEST_REDISBLOOM_URL", "TRAWL_DEMO_URL", "TRAWL_SIGNING_KEY_NAME", "TRAWL_ENGINE_DIR"}
"""Read by a test, by the demo's site file, by the stack file, and by `make containers`."""
ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)


def documented() -> set[str]:
    """The names in the first column of the tables."""
    return {
        name
        for cell in ROW.findall((ROOT / "docs/reference/settings.md").read_text("utf-8"))
        for name in re.findall(r"`(\w+)`", cell)
    }


def test_every_setting_and_variable_that_is_read_is_documented() -> None:
    ours = set(READ.findall(CODE)) - SCRAPYS
    assert len(ours) > 15, "the pattern still finds them"
    assert ours <= documented()


def test_every_variable_that_is_named_anywhere_is_declared() -> None:
    named = {name for path in (*FILES, *OTHER_FILES) for name in VARIABLE.findall(path.read_text("utf-8"))}
    assert len(named) > 25, "the pattern still finds them"
    assert {name for name in named if name.removesuffix("_FILE") not in DECLARED} - DECLARED - OF_OTHERS - RENAMED.keys() == set()


def test_the_variables_that_trawl_toml_may_have_are_declared_and_listed() -> None:
    text = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    listed = text[text.index("`[fleet]` may have") :].split(".\n", 1)[0]
    assert re.findall(r"`(\w+)`", listed) == list(IN_FILE)
    assert {f"TRAWL_{name.upper()}" for name in IN_FILE} <= DECLARED


def test_no_variable_is_read_past_its_declaration() -> None:
    past = re.compile(r"""environ(?:\.get\(|\[)\s*f?"TRAWL_[^\n]*""")
    found = [(path.name, hit) for path in FILES for hit in past.findall(path.read_text("utf-8")) if "] = " not in hit]
    assert found == []


def test_every_documented_setting_exists() -> None:
    assert [name for name in sorted(documented() - SCRAPYS - DECLARED) if name not in CODE] == []
