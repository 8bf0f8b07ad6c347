"""Problems of a fleet, each with its next step, the worst first. Pure: depends on an `Overview` alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from redis_components.admin.health import Problem
from redis_components.admin.inspector import total_of
from redis_components.admin.lanes import LaneCondition
from redis_components.politeness.limits import MINUTE_MS
from redis_components.server.printable import span
from workers.process.config_digest import differences
from workers.state.group_runs import GroupRun, quota_lane
from workers.state.holds import HOST
from workers.state.records import GONE_AFTER_S
from workers.state.registry import CrawlerState
from workers.state.rolls import RollState

from .model import Overview, ServiceView

MOST_NAMED = 5  # boards, records or parts in one sentence

STARVED_S = 60.0  # until the limits of a site let one of its waiting requests go
STANDS_S = 300.0  # without a sign of life: a page in flight, or a starting crawler


def problems(view: Overview) -> list[Problem]:
    """Return all problems; empty for a fleet that is well. Holds by an operator are not problems."""
    if view.failure is not None:
        return [Problem(what=view.failure, fix="")]
    parts = (_redis, _beat, _crawlers, _services, _nodes, _items, _roll, _runs, _sites, _lanes, _dead)
    found = [one for part in parts for one in part(view)]
    return sorted(found, key=lambda one: not one.grave)


WELL = "all is well"


def calm(view: Overview) -> str:
    """Return the state of a fleet without problems: what an operator holds, why it has nothing to do, or WELL."""
    held = [f"{one.what} is {one.hold.state}" for one in view.held if not one.by_breaker]
    return named(held) if held else view.sites.idle(view) or WELL


def _redis(view: Overview) -> Iterator[Problem]:
    for part, why in view.unreadable.items():
        yield Problem(what=f"{part} cannot be read ({why})", fix="trawl doctor names foreign keys")
    yield from view.server
    yield from view.troubles
    if view.foreign:
        number = len(view.foreign)
        records = f"{number:,} records in Redis are not Trawl's and were left out" if number > 1 else "a record was left out"
        yield Problem(what=f"{records} ({view.foreign[0]})", fix="trawl doctor names each, with the command that removes it")


def _beat(view: Overview) -> Iterator[Problem]:
    if view.beats is not None and view.beats.stalled:
        yield Problem(what=f"beat: {view.beats.sentence()}", fix="")


def _nodes(view: Overview) -> Iterator[Problem]:
    for difference in differences(node for node in view.nodes if node.alive(view.now)):
        yield Problem(what=difference, fix="copy them to every node; each follows its own until then")
    wanted = any(view.wanted(one) for one in view.services)  # not in a fleet of jobs alone, which each node takes
    for node in view.nodes:
        if not node.alive(view.now):
            what = f"node {node.name} was last heard {view.now - node.beat_at:.0f} s ago"
            yield Problem(what=what, fix="look at that machine; its crawlers start on nodes that have room", grave=False)
        elif node.rivals:
            yield Problem(what=node.rivalry(), fix="give each worker a unique name (celery -A tasks worker -n NAME@%h)")
        elif wanted and not (node.draining or {one.name for one in view.services} & {*node.services}):
            what = f"node {node.name} serves nothing of this fleet ({', '.join(node.services[:MOST_NAMED]) or 'no service'})"
            yield Problem(what=what, fix="start it with -Q crawlers for all services, or -Q crawlers.SERVICE", grave=False)


def _services(view: Overview) -> Iterator[Problem]:
    for one in view.services:
        if one.is_full and one.is_known:
            refused = total_of(one.crawl.stats, "start_tasks/refused")
            what = f"{one.name} has no room for start tasks: {one.crawl.start_tasks:,} wait, max_waiting = {one.max_waiting:,}"
            yield Problem(
                what=f"{what}; {refused:,} were refused" if refused else f"{what}; what comes by Redis itself is not refused",
                fix=f"more crawlers (trawl scale {one.name}=N), fewer tasks (trawl schedule list), or a higher max_waiting",
                grave=False,
            )
    hopeless = Counter(one.spider for one in view.crawlers if one.state.given_up)
    short = [one for one in view.services if one.up < view.wanted(one)]
    if not short:
        return
    lacking = view.shortages if any(node.alive(view.now) and not node.draining for node in view.nodes) else {}
    if not (any(one.alive for one in view.services) or hopeless or lacking or _backing_off(view)):
        yield Problem(what="no crawler is alive", fix=_start_hint(view))
        return
    for service, sentence in lacking.items():
        fix = f"start another node that serves it (-Q crawlers, or -Q crawlers.{service}), or raise TRAWL_NODE_CRAWLERS"
        yield Problem(what=f"{service}: {sentence}", fix=fix)
    for one in short:
        if one.name not in lacking and view.wanted(one) - one.up > hopeless[one.name]:
            yield _short(view, one)


def _short(view: Overview, one: ServiceView) -> Problem:
    ended = [crawler for crawler in view.crawlers if crawler.spider == one.name and crawler.state is CrawlerState.BACKING_OFF]
    why = f", {ended[0].name} ended: {ended[0].note or ended[0].last_exit or 'no reason is known'}" if ended else ""
    return Problem(
        what=f"{one.name} has {one.up} of {view.wanted(one)} crawlers{why}",
        fix=f"they start within seconds; if not, see trawl history {one.name}",
    )


def _backing_off(view: Overview) -> bool:
    lately = [one for one in view.crawlers if view.now - one.beat_at < GONE_AFTER_S]
    return any(one.state is CrawlerState.BACKING_OFF for one in lately)


def _start_hint(view: Overview) -> str:
    nodes = [node for node in view.nodes if node.alive(view.now)]
    if nodes and all(node.draining for node in nodes):
        return "every node is being drained; start another one, or run trawl resume --node NAME"
    if not nodes:
        return "start the fleet with trawl up, or a node with celery -A tasks worker (and beat once)"
    return "crawlers start within seconds; if not: trawl logs, trawl history"


def _crawlers(view: Overview) -> Iterator[Problem]:
    for one in view.crawlers:
        if one.state.given_up:
            reason = ": ".join(filter(None, (one.note or one.last_exit or "no reason is known", one.error)))
            fix = f"trawl logs {one.name}; then trawl resume {one.spider}, it is also tried again each minute"
            yield Problem(what=f"{one.name} is {one.state}: {reason}", fix=fix)
        elif one.alive(view.now) and one.oldest_s >= STANDS_S:
            what = f"{one.name}: a page has given no sign of life for {span(one.oldest_s)}, {one.oldest}"
            yield Problem(what=what, fix="mend what is awaited; SCHEDULER_MAX_PAGE_AGE gives it back, with an attempt counted")
        elif one.alive(view.now) and one.state is CrawlerState.STARTING and view.now - one.started_at >= STANDS_S:
            what = f"{one.name} has been starting for {span(view.now - one.started_at)}"
            yield Problem(what=what, fix=f"a component that it opens does not answer: trawl logs {one.name}")


def _items(view: Overview) -> Iterator[Problem]:
    waiting = {one.name: one.items_waiting for one in view.services}
    for name in view.without_consumer:
        number = waiting.get(name.partition("/")[0], 0)
        what = f"{name} declares a consumer and none runs" + (f", {number:,} items wait" if number else "")
        yield Problem(what=what, fix="start a worker with -Q control (trawl up)", grave=bool(number))
    for one in view.services:
        crawl = one.crawl
        if crawl.backed_up:
            bounds = [f"{crawl.max_items:,} items"] if crawl.max_items else []
            bounds += [f"{crawl.max_item_bytes >> 20:,} MiB"] if crawl.max_item_bytes else []
            yield Problem(
                what=f"{one.name} starts no page: {crawl.items:,} items wait for their consumer, {crawl.bad_items:,} were "
                f"refused ({crawl.item_bytes / 2**20:,.0f} MiB; bounds: {' and '.join(bounds)}); nothing is lost",
                fix=f"consume them (trawl items consume), see trawl dead items {one.name}, or raise REDIS_ITEMS_MAX_WAITING",
            )
        elif one.items_refused:
            what = f"{one.name}: {one.items_refused:,} items were refused by their consumer and are kept"
            yield Problem(what=what, fix=f"trawl dead items {one.name}")


def _roll(view: Overview) -> Iterator[Problem]:
    if view.roll is not None and view.roll.state is RollState.FAILED:
        yield Problem(what=f"roll {view.roll.sentence()}", fix="mend it and roll again, or run trawl roll --abort")


def _sooner(run: GroupRun, view: Overview) -> str:
    """Return what would end a late run sooner, and what would not."""
    limited = "no number of crawlers helps a site that has a limit"
    if run.late_by:
        more = "neither would more crawlers" if " at the pace of " in run.late_by else f"more crawlers for it may; {limited}"
        quota = ", a higher per_minute may" if run.late_by.endswith(f" the quota {run.quota}") else ""
        return f"{run.late_by}: a higher at_once would not help, {more}{quota}"
    if not run.waiting:
        return f"no member waits, so more of them at a time would not help; more crawlers for each may, but {limited}"
    if run.waits_for:
        return f"more places for the quota {run.quota}: a higher at_once would not help; and {limited}"
    room = sum(node.capacity - node.taken for node in view.nodes if node.alive(view.now) and not node.draining)
    if room < 1:
        return f"another node: every place is taken, so a higher at_once would not help; and {limited}"
    left_s = max(1.0, (run.deadline_at or view.now) - view.now)
    needed = math.ceil(run.at_once * max(1.0, (run.late or view.now) - view.now) / left_s)
    enough = "" if needed - run.at_once <= room else f" and nodes for {needed - run.at_once - room} more"
    return f"at_once = {needed}{enough} would (it is {run.at_once}, and nodes have room for {room} more); {limited}"


def _runs(view: Overview) -> Iterator[Problem]:
    for run in view.runs:
        fix = f"trawl runs show {run.id}"
        if run.late:
            hours = span(run.late - (run.deadline_at or run.late))
            yield Problem(what=f"run {run.id} will miss its deadline by {hours}", fix=f"{_sooner(run, view)}; {fix}", grave=False)
        if run.waits_for:
            what = f"run {run.id}: {run.waiting} members wait for {run.waits_for}"
            yield Problem(what=what, fix=f"wait, or raise the quota in trawl.toml and run it again; {fix}", grave=False)
        for lane in (one for one in view.sites.lanes if run.quota and one.lane == quota_lane(run.quota) and one.waiting):
            most = f"{lane.limits.within(MINUTE_MS) or 0:,} a minute, over all its groups"
            what = f"run {run.id}: {lane.waiting:,} requests wait for the quota {run.quota}, which has {most}"
            yield Problem(what=what, fix="wait, or raise per_minute in trawl.toml", grave=False)
        if run.alerting:
            counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(run.alerts.items(), key=lambda one: -one[1]))
            members = "1 member needs" if run.alerting == 1 else f"{run.alerting} members need"
            yield Problem(what=f"run {run.id}: {members} a look ({counts})", fix=f"{fix}; trawl run silence", grave=False)


def _sites(view: Overview) -> Iterator[Problem]:
    for site, one in view.sites.breakers.items():
        when = "is tried again by the crawl" if one.kind == HOST else "is crawled again when a probe finds its pages"
        fix = f"it {when}; at once: trawl resume --site {site} --breaker"
        yield Problem(what=f"site {site} is not crawled: {one.reason}", fix=fix)
    yield from view.sites.problems(view)


REFUSED_S = 1800.0
"""A site that has refused requests for longer, without a pause of half an hour, refuses permanently."""


def _lanes(view: Overview) -> Iterator[Problem]:
    asked = (LaneCondition.LEFT_ALONE, LaneCondition.QUIET)
    starved = [one for one in view.sites.lanes if one.waiting and (one.next_s or 0.0) >= STARVED_S and one.condition not in asked]
    if starved:
        most = max(starved, key=lambda one: one.waiting)
        what = f"{most.waiting:,} requests of {most.lane} wait, its limits let none go for {span(most.next_s or 0.0)}"
        others = f"; as does {named(one.lane for one in starved if one is not most)}" if len(starved) > 1 else ""
        fix = f"wait, or raise it: trawl limit {most.lane}"
        yield Problem(what=f"{what} ({most.why or 'a quota'}){others}", fix=fix, grave=False)
    refusing = [one for one in view.sites.lanes if one.state.refusals > 1 and one.state.refused_s >= REFUSED_S]
    if refusing:
        most = max(refusing, key=lambda one: one.state.refusals)
        what = f"requests are refused without half an hour of peace: {named(one.lane for one in refusing)}"
        times = f"{most.lane} has refused {most.state.refusals:,} in {span(most.state.refused_s)}"
        yield Problem(what=f"{what} ({times})", fix="trawl limit shows them; send less: trawl limit SITE --rate N", grave=False)


def _dead(view: Overview) -> Iterator[Problem]:
    if dead := [f"{one.name} {one.crawl.dead:,}" for one in view.services if one.crawl.dead]:
        yield Problem(what=f"requests were given up and are kept ({', '.join(dead)})", fix="trawl dead", grave=False)
    if view.dead_messages:
        what = f"{view.dead_messages:,} messages of the broker could not be read or run and were set aside"
        yield Problem(what=what, fix="trawl dead messages")


def named(names: Iterable[str]) -> str:
    """List the first names, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - MOST_NAMED:,} more" if len(found) > MOST_NAMED else ""
    return ", ".join(found[:MOST_NAMED]) + more
