"""The status page: one screen of HTML, rendered here, that loads nothing and asks again by itself."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from redis_components.breakers import drift_sentence
from redis_components.fleet_holds import word_of
from redis_components.forum_states import WatchedForum
from redis_components.inspector import CrawlSnapshot
from redis_components.nodes import NodeRecord
from redis_components.registry import CrawlerRecord, CrawlerState, ErrorRecord
from redis_components.rolls import RollState

from .metrics import GONE, state_of, up
from .page_style import STYLE
from .reading import Reading

REFRESH_S = 3
GAPS_SHOWN = 5
BOARDS_SHOWN = 12

_GOOD = {CrawlerState.RUNNING}
_BAD = {CrawlerState.CRASH_LOOPING, CrawlerState.REFUSED, GONE}


def page(reading: Reading, source: str) -> str:
    """The whole page. `source` is the name of the Redis that was read; every value is escaped."""
    body = _trouble(reading) if reading.failure else _tables(reading)
    state = _badge("Redis is away", "bad") if reading.failure else _badge("Redis answers", "good")
    when = "" if reading.failure else f'<span class="faint">{_clock(reading.now)}</span>'
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Trawl</title>'
        f'<meta http-equiv="refresh" content="{REFRESH_S}"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}</style></head><body><header><h1>Trawl</h1>{state}{when}</header>{body}"
        f"<footer>{escape(source)} · read in {reading.seconds * 1000:.0f} ms · every {REFRESH_S} s · "
        '<a href="/metrics">metrics</a> · <a href="/healthz">health</a></footer></body></html>'
    )


def _trouble(reading: Reading) -> str:
    return f'<p class="alarm bad">{escape(reading.failure or "")}</p>'


def _tables(reading: Reading) -> str:
    unreadable = "".join(
        f'<p class="alarm bad">{escape(part)} cannot be read: {escape(why)}</p>' for part, why in reading.unreadable.items()
    )
    sections = (_held, _sites, _beat, _stale, _gaps, _roll, _services, _crawlers, _boards, _nodes, _errors)
    return unreadable + "".join(section(reading) for section in sections)


def _beat(reading: Reading) -> str:
    """Only bad news: nobody sends what is scheduled."""
    if reading.beats is None or not reading.beats.stalled:
        return ""
    return f'<p class="alarm bad">beat: {escape(reading.beats.sentence())}</p>'


def _stale(reading: Reading) -> str:
    """Only bad news: boards that were to be scanned and are not."""
    if not reading.stale:
        return ""
    first, more = reading.stale[0], len(reading.stale) - 1
    others = f" and {more} more" if more else ""
    why = f": {first.state.reason}" if first.state.errors and first.state.reason else ""
    said = f"stale: {first.site}/{first.forum} (due {_ago(reading.now - first.due_at)} ago{why}){others}; see trawl forums"
    return f'<p class="alarm bad">{escape(said)}</p>'


def _gaps(reading: Reading) -> str:
    """Only bad news: threads may be missing."""
    gaps = sorted(f"{one.site}/{one.forum}" for one in reading.forums if one.state.gap_at is not None)
    if not gaps:
        return ""
    named = ", ".join(gaps[:GAPS_SHOWN]) + (f" and {len(gaps) - GAPS_SHOWN} more" if len(gaps) > GAPS_SHOWN else "")
    return f'<p class="alarm wait">a gap is open in {escape(named)}; see trawl forums</p>'


def _roll(reading: Reading) -> str:
    """While one is under way, and when it has failed, until it is cleared away or another one begins."""
    if reading.roll is None or reading.roll.state not in (RollState.ROLLING, RollState.FAILED):
        return ""
    tone = "bad" if reading.roll.state is RollState.FAILED else "wait"
    return f'<p class="alarm {tone}">roll {escape(reading.roll.sentence())}</p>'


def _services(reading: Reading) -> str:
    head = "service|crawlers|#pages/s|#start tasks|#waiting|#in work|#dead|#items waiting|#bad items|#pages|#items|#known"
    return _table("Services", head, [_service(reading, crawl) for crawl in reading.crawls], "No service can be read.")


def _service(reading: Reading, crawl: CrawlSnapshot) -> str:
    alive, desired = up(reading, crawl.spider), reading.desired.get(crawl.spider)
    pages_per_s = sum(r.pages_per_s for r in reading.crawlers if r.spider == crawl.spider and r.alive(reading.now))
    word = word_of(crawl.spider, reading.held)
    fleet = _badge(
        (f"{alive} of {desired}" if desired is not None else str(alive)) + (f", {word.state}" if word else ""),
        "wait" if word else "good" if alive >= (desired or 0) else "bad" if alive == 0 else "wait",
    )
    return (
        f"<th>{escape(crawl.spider)}</th><td>{fleet}</td>{_number(f'{pages_per_s:.1f}')}{_number(crawl.start_tasks)}"
        f"{_number(crawl.ready)}{_number(crawl.leased)}{_number(crawl.dead, alarm=True)}{_number(crawl.items)}"
        f"{_number(crawl.bad_items, alarm=True)}{_number(_stat(crawl, 'downloader/response_count'))}"
        f"{_number(_stat(crawl, 'item_scraped_count'))}{_number(crawl.fingerprints)}"
    )


def _crawlers(reading: Reading) -> str:
    head = "crawler|state|#pid|node|#heard|#pages/s|#in flight|#pages|#items|#memory|#restarts"
    rows = [_crawler(r, reading.now) for r in reading.crawlers]
    return _table("Crawlers", head, rows, "No crawler has been heard of. Is a worker running? (celery -A tasks worker)")


def _crawler(record: CrawlerRecord, now: float) -> str:
    state, alive = state_of(record, now), record.alive(now)
    tone = "good" if state in _GOOD else "bad" if state in _BAD else "wait"
    speed, memory = f"{record.pages_per_s:.1f}", f"{record.rss_bytes / 2**20:,.0f} MiB"
    figures = (speed, record.in_flight, record.pages, record.items, memory) if alive else ("",) * 5
    return (
        f"<th>{escape(record.name)}</th><td>{_badge(state, tone)}</td>{_number(str(record.pid) if alive else '')}"
        f"<td>{escape(record.node)}</td>{_number(f'{_ago(now - record.beat_at)} ago')}"
        f"{''.join(_number(figure) for figure in figures)}{_number(record.restarts)}{_story(record)}"
    )


def _story(record: CrawlerRecord) -> str:
    """A row of its own below the crawler's: why it is in its state, and how the process before it ended."""
    before = f"before: {record.last_exit}" if record.last_exit else None
    said = " · ".join(filter(None, (record.note, record.error, before)))
    return f'</tr><tr class="story"><td colspan="11">{escape(said)}</td>' if said else ""


def _held(reading: Reading) -> str:
    """Nothing where nothing is held: it comes first."""
    rows = [
        f"<th>{escape(one.what)}</th><td>{_badge(one.hold.word.state, 'wait')}</td>{_number(_ago(reading.now - one.hold.at))}"
        f'<td>{escape(one.hold.by)}</td><td class="text">{escape(one.hold.reason)}</td>'
        for one in reading.held
        if not one.by_breaker
    ]
    return _table("Held", "what|state|#for|by|why", rows, "") if rows else ""


def _sites(reading: Reading) -> str:
    """Nothing where all sites are well: what their breakers hold, and what their pages have no more."""
    rows = [
        f"<th>{escape(site)}</th><td>{_badge('broken', 'bad')}</td>{_number(_ago(reading.now - one.since))}"
        f"{_number(_ago(one.next_probe_at - reading.now))}"
        f'<td class="text">{escape(one.reason)}<br><span class="faint">{escape(one.url)} {escape(one.excerpt)}</span></td>'
        for site, one in reading.breakers.items()
    ]
    rows += [
        f"<th>{escape(site)}</th><td>{_badge('drifted', 'wait')}</td>{_number('')}{_number('')}"
        f'<td class="text">{escape(kind)} pages: {escape(drift_sentence(figure, *values))}</td>'
        for (site, kind, figure), values in reading.drifts.items()
    ]
    return _table("Sites", "site|state|#for|#next probe in|why", rows, "") if rows else ""


def _boards(reading: Reading) -> str:
    """The forums that are watched, those that wait longest first; nothing where there are none."""
    stale = {(one.site, one.forum) for one in reading.stale}
    boards = sorted(reading.forums, key=lambda one: ((one.site, one.forum) not in stale, one.due_at))
    rows = [_board(one, reading.now, stale=(one.site, one.forum) in stale) for one in boards[:BOARDS_SHOWN]]
    title = f"Boards, {BOARDS_SHOWN} of {len(boards):,}" if len(boards) > BOARDS_SHOWN else "Boards"
    return _table(title, "board|name|state|#last scan|#next scan|#newest", rows, "") if rows else ""


def _board(one: WatchedForum, now: float, *, stale: bool) -> str:
    state = one.state
    words = {"stale": stale, "failing": state.errors, "gap": state.gap_at is not None, "new": state.tried_at is None}
    word = next((word for word, is_so in words.items() if is_so), "fresh")
    tone = {"new": "wait", "fresh": "good"}.get(word, "bad")
    scanned, newest = (f"{_ago(now - at)} ago" if at is not None else "" for at in (state.scanned_at, state.newest_at))
    next_scan = f"in {_ago(one.due_at - now)}" if one.due_at > now else "now"
    return (
        f"<th>{escape(f'{one.site}/{one.forum}')}</th><td>{escape(state.name or '')}</td><td>{_badge(word, tone)}</td>"
        f"{_number(scanned)}{_number(next_scan)}{_number(newest)}"
    )


def _nodes(reading: Reading) -> str:
    rows = [_node(node, reading.now) for node in reading.nodes]
    return _table("Nodes", "node|state|#crawlers|#heard|configuration|serves", rows, "No node has been heard of.")


def _node(node: NodeRecord, now: float) -> str:
    state = node.state(now)
    tone = {"up": "good", "draining": "wait"}.get(state, "bad")
    return (
        f"<th>{escape(node.name)}</th><td>{_badge(state, tone)}</td>{_number(f'{node.taken} of {node.capacity}')}"
        f"{_number(f'{_ago(now - node.beat_at)} ago')}<td>{escape(node.config)}</td><td>{escape(', '.join(node.services))}</td>"
    )


def _errors(reading: Reading) -> str:
    rows = [_error(error, reading.now) for error in reading.errors]
    return _table("Last errors", "when|where|what", rows, "None.")


def _error(error: ErrorRecord, now: float) -> str:
    return (
        f'<td title="{_clock(error.at)}">{_ago(now - error.at)} ago</td><td>{escape(str(error.where))}</td>'
        f'<td class="text">{escape(str(error))}</td>'
    )


# pieces


def _table(title: str, head: str, rows: Iterable[str], empty: str) -> str:
    """`head` names the columns, apart by `|`; `#` marks one of numbers."""
    cells = "".join(f'<th class="n">{name[1:]}</th>' if name.startswith("#") else f"<th>{name}</th>" for name in head.split("|"))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    return f'<section><h2>{title}</h2><div class="wide">{table if body else f"<p class=empty>{empty}</p>"}</div></section>'


def _badge(text: str, tone: str) -> str:
    return f'<span class="badge {tone}">{escape(text)}</span>'


def _number(value: float | str, *, alarm: bool = False) -> str:
    """A cell with a number; `alarm`: any but 0 is bad news."""
    text = f"{value:,}" if isinstance(value, int) else str(value)
    zero = text in ("0", "0.0")
    return f'<td class="n{" zero" if zero else ""}">{_badge(text, "bad") if alarm and not zero else escape(text)}</td>'


def _stat(crawl: CrawlSnapshot, name: str) -> int:
    text = crawl.stats.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _ago(seconds: float) -> str:
    """`3 s`, `12 min`, `5 h`, `9 days`."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
