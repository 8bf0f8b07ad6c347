"""The experiments of docs/research run in their smallest form, and show what their pages state."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.research import articles, depth, expiry, iteration, metrics, serializer, unstorable
from benchmarks.research.__main__ import BEGIN, END, NAMES, PAGES, figures_of, place


def rows(report: Any) -> list[dict[str, Any]]:
    (table,) = report.figures["tables"]
    return list(table)


def test_no_payload_runs_code_in_a_crawler_of_ours_and_what_cannot_be_read_is_set_aside() -> None:
    page, queue = rows(serializer.run(small=True))
    assert (page["code was run"], page["pages fetched"], page["set aside"]) == ("no", 4, 0)
    assert (queue["code was run"], queue["pages fetched"], queue["set aside"]) == ("no", 1, 2)


def test_what_can_be_written_down_is_shared_and_the_rest_is_kept() -> None:
    found = {row["the request holds"]: row for row in rows(unstorable.run(small=True))}
    shared = {name for name, row in found.items() if row["Trawl"] == "shared"}
    assert shared == {"nothing", "text and numbers", "a tuple, a set, a date", "a scrapy.Item", "a dataclass of the project"}
    assert {row["Trawl"] for row in found.values()} == {"shared", "kept"}
    assert found["a lock"]["scrapy-redis"] == "lost"


@pytest.mark.thorough
def test_a_limit_of_depth_cuts_a_chain_and_nothing_else() -> None:
    found = {row["settings"]: row for row in rows(depth.run(small=True))}
    limited = found.pop("DEPTH_LIMIT = 10")
    assert (limited["pages of the chain"], limited["pages in all"]) == ("10 of 12", 51)
    assert {(row["pages of the chain"], row["pages in all"]) for row in found.values()} == {("12 of 12", 53)}


@pytest.mark.processes
def test_an_article_on_several_lists_is_stored_once_and_its_edits_are_seen() -> None:
    (found,) = rows(articles.run(small=True))
    assert (found["articles"], found["first scan"], found["after 10 edits and 5 new"]) == (17, 12, 15)
    assert (found["edits seen by the scan"], found["by a check"]) == ("10 of 10", "10 of 10")


@pytest.mark.thorough
def test_a_tree_has_more_in_the_queue_than_a_chain_and_a_death_loses_none_of_either() -> None:
    whole, killed = iteration.run(small=True).figures["tables"]
    chain, tree = whole
    assert (chain["pages"], tree["pages"]) == (39, 39)
    assert chain["most queued"] < tree["most queued"]
    assert [row["never fetched after a new start"] for row in killed] == [0]


def test_a_bound_below_what_the_lists_show_fetches_pages_again_at_each_scan() -> None:
    found = {(row["bound"], row["DUPEFILTER_RENEW"]): row for row in rows(expiry.run(small=True))}
    assert found["no bound", ""]["twice"] == 0
    assert found["4 days", "met"]["twice"] == found["4 days", "hits"]["twice"] == 0
    too_small = {renew: found["1,000 entries", renew]["still listed"] for renew in ("met", "hits", "written")}
    assert too_small["met"] > too_small["written"] > too_small["hits"] > 1000


@pytest.mark.processes
def test_what_a_projects_extension_counts_is_in_the_metrics_and_on_the_page() -> None:
    found = {row["seen in"]: (row["counted"], row["noted"]) for row in rows(metrics.run(small=True))}
    assert found["the exporter's /metrics"] == ("20.0", "20.0")
    assert found["the page /service/books"] == ("20", "20.0")
    assert found["the hash books:stats"] == ("20", "")


@pytest.mark.parametrize("name", NAMES)
def test_each_page_has_the_figures_of_its_script(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text("utf-8")
    assert f"ONLY={name}" in text.partition(BEGIN)[2].partition(END)[0]


def test_figures_replace_what_stood_between_the_marks(tmp_path: Any) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nfigures of before\n{END}\nafter\n")
    place(page, figures_of(unstorable.run(small=True), "unstorable"))
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n\nMade by")
    assert text.endswith(f"{END}\nafter\n")
    assert "figures of before" not in text
