"""Alarms: told once, when they last, and told to be over."""

from __future__ import annotations

from dataclasses import replace

from forums.events.messages import LASTS_S, OVER_S, Alarm, alarm_message, identity, step
from redis_components.admin.health import Problem

SHORT = Problem(what="forum_detail has 1 of 3 crawlers", fix="trawl history forum_detail")
HELD = Problem(what="site demo is not crawled: HTTP 403", fix="trawl resume --site demo --breaker")


def run(*looks: tuple[float, list[Problem]]) -> list[tuple[float, list[str], list[str]]]:
    known: dict[str, Alarm] = {}
    said = []
    for now, troubles in looks:
        found = step(known, troubles, now)
        known = found.known
        if found.started or found.over:
            said.append((now, [one.what for one in found.started], [one.what for one in found.over]))
    return said


def test_a_problem_is_told_once_when_it_lasts_and_once_when_it_is_over() -> None:
    end = LASTS_S + 30 + OVER_S
    looks = [(0.0, [SHORT]), (30.0, [SHORT]), (LASTS_S, [SHORT, HELD]), (LASTS_S + 30, [SHORT]), (end, []), (end + 1, [])]
    assert run(*looks) == [(LASTS_S, [SHORT.what], []), (end, [], [SHORT.what])]


def test_what_mends_itself_and_what_flickers_disturbs_nobody() -> None:
    assert run((0.0, [SHORT]), (30.0, []), (LASTS_S, [SHORT]), (LASTS_S + 1, [])) == []
    flickering = [(LASTS_S + n * 30.0, [SHORT] if n % 2 else []) for n in range(10)]
    assert len(run((0.0, [SHORT]), (LASTS_S, [SHORT]), *flickering)) == 1


def test_numbers_and_details_do_not_make_it_another_problem() -> None:
    worse = replace(SHORT, what="forum_detail has 0 of 3 crawlers, forum_detail/2 ended")
    assert identity(HELD) == identity(replace(HELD, what="site demo is not crawled: HTTP 503"))
    waits = [replace(HELD, what=f"a page has given no sign of life for {time}") for time in ("119 min", "2 h", "3 d")]
    assert len(set(map(identity, waits))) == 1, "a duration that grows into another unit is the same problem"
    assert identity(SHORT) != identity(worse), "only what stands behind a colon is a detail"
    assert identity(SHORT) == identity(replace(SHORT, what="forum_detail has 2 of 12 crawlers"))
    assert identity(HELD) != identity(replace(HELD, what="site other is not crawled: HTTP 403"))


def test_the_message_says_what_to_do_and_what_is_left() -> None:
    known = step({}, [SHORT, HELD], 0.0).known
    found = step(known, [SHORT, HELD], LASTS_S)
    title, text = alarm_message(found)
    assert title == "Trawl: 2 problems"
    assert "next: trawl history forum_detail" in text
    assert text.endswith("2 in all need attention: trawl status")
    over = step(found.known, [], LASTS_S + OVER_S)
    assert alarm_message(over) == ("Trawl: 2 resolved", f"resolved: {SHORT.what}\nresolved: {HELD.what}\nAll is well.")
