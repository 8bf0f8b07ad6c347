"""Gain by the fleet's settings over Scrapy's defaults, and each one's share.

    python -m benchmarks.frontier.settings_share [--rounds 5] [--only NAME ...]

First the whole: vanilla Scrapy with its default settings, and with a quiet log, no remote consoles and as many requests at a time
as the fleet, against a crawler with `workers/settings.py`. Then the parts: the fleet's settings with one of Scrapy's defaults put
back, and with one thing more switched off, each beside a run of the fleet's settings of its own, in random order. Each figure is
pages/s ÷ the fleet's in the same pair: below 1 is what the setting is worth, above 1 is what a change would gain.
"""

from __future__ import annotations

from typing import Any

from benchmarks.peers.job import Job
from benchmarks.support.peer import run_with_redis
from benchmarks.support.report import Report, options
from benchmarks.support.rounds import Figures, Rounds, pages_per_cpu_s, pages_per_s
from demo.forum.process import ForumProcess
from tests.support.redis_server import RedisServer

FORUMS = 4
TARGET = 3.0
FLEET, DEFAULTS, VANILLA = "the fleet's settings", "vanilla, Scrapy's defaults", "vanilla, the fleet's settings"
QUIET = "the same, quiet, 32 requests at a time"

NO_DEPTH = {"SPIDER_MIDDLEWARES": {"scrapy.spidermiddlewares.depth.DepthMiddleware": None}}
NO_HEADERS = {
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
}
NO_AUTH = {"DOWNLOADER_MIDDLEWARES": {"scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None}}
TWISTED = "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"

BACK: dict[str, dict[str, Any]] = {
    "CONCURRENT_ITEMS 100": {"CONCURRENT_ITEMS": 100},
    "Python's garbage collector": {"GC_THRESHOLD": []},
    "COOKIES_ENABLED": {"COOKIES_ENABLED": True},
    "HTTPPROXY_ENABLED": {"HTTPPROXY_ENABLED": True},
    "METAREFRESH_ENABLED": {"METAREFRESH_ENABLED": True},
    "LOG_LEVEL DEBUG": {"LOG_LEVEL": "DEBUG"},
    "MEMUSAGE_ENABLED": {"MEMUSAGE_ENABLED": True},
    "REFERER_ENABLED": {"REFERER_ENABLED": True},
    "Twisted's HTTP client": {"DOWNLOAD_HANDLERS": {"http": TWISTED, "https": TWISTED}},
    "asyncio's own event loop": {"ASYNCIO_EVENT_LOOP": None},
}
"""One of Scrapy's defaults put back into the fleet's settings."""

MORE: dict[str, dict[str, Any]] = {
    "no HttpCompression": {"COMPRESSION_ENABLED": False},
    "no Depth": NO_DEPTH,
    "no HttpAuth": NO_AUTH,
    "no UrlLength": {"URLLENGTH_LIMIT": 0},
    "no UserAgent, DefaultHeaders": {"DOWNLOADER_MIDDLEWARES": NO_HEADERS},
    "no DownloaderStats": {"DOWNLOADER_STATS": False},
    "LOG_LEVEL WARNING": {"LOG_LEVEL": "WARNING"},
}
"""One thing more that the fleet's settings could do."""


def main() -> None:
    """Run the rounds and print the report."""
    parser = options(__doc__, rounds=5)
    parser.add_argument("--threads", type=int, default=300, help="threads in each of the four forums (default: %(default)s)")
    parser.add_argument("--only", nargs="*", choices=[*BACK, *MORE], metavar="NAME", help="these parts (default: all)")
    chosen = parser.parse_args()
    report = Report(title="What the settings are worth", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats += [
        "The pages are JSON on 127.0.0.1: METAREFRESH, which reads HTML, and what caches DNS show nothing here.",
        "32 requests at a time for each but Scrapy's defaults, which have 16, and 8 for each host; their log, a few lines "
        "for each page, goes into a file. The crawler with the fleet's settings shares requests, stats and items through Redis, "
        "vanilla keeps requests and stats in memory and stores no items.",
    ]
    parts = {name: settings for name, settings in {**BACK, **MORE}.items() if chosen.only is None or name in chosen.only}
    jobs: dict[str, dict[str, Any]] = {
        FLEET: {"peer": "trawl", "profile": "fleet"},
        DEFAULTS: {"peer": "vanilla", "profile": "defaults"},
        QUIET: {"peer": "vanilla", "profile": "quiet"},
        VANILLA: {"peer": "vanilla", "profile": "fleet"},
        **{name: {"peer": "trawl", "profile": "fleet", "settings": settings} for name, settings in parts.items()},
    }
    wholes = [DEFAULTS, QUIET, FLEET, VANILLA]
    with ForumProcess(seed=5, forums=FORUMS, threads=chosen.threads, comments=8) as forum, RedisServer() as server:
        report.served_by(server.client())
        seeds = [f"{forum.url}/list/f{number}/1" for number in range(1, FORUMS + 1)]

        def measure(variant: str) -> Figures:
            return run_with_redis(Job(spider="forum", site=forum.url, **jobs[variant]), server, seeds=seeds)

        whole = Rounds.play(chosen.rounds, wholes, measure)
        rounds = Rounds.pairs(chosen.rounds, FLEET, list(parts), measure)
    report.figures |= {"whole": whole.played, "parts": rounds.played}
    report.table(
        ["variant", "pages/s", "÷ Scrapy's defaults", "from-to", "CPU: ÷ Scrapy's defaults"],
        [row(whole, variant, DEFAULTS) for variant in wholes],
    )
    for title, group in (("one default put back", BACK), ("one thing more", MORE)):
        names = [name for name in group if name in jobs]
        if names:
            report.table(
                [title, "pages/s", "÷ the fleet's", "from-to", "CPU: ÷ the fleet's"], [row(rounds, name, FLEET) for name in names]
            )
    ratio = whole.ratio(FLEET, DEFAULTS)
    report.target(f"the fleet's settings ≥ {TARGET:g} × vanilla with Scrapy's defaults: {ratio:.2f}", ratio >= TARGET)
    report.finish(chosen)


def row(rounds: Rounds, variant: str, base: str) -> list[object]:
    """One line of a table."""
    ratios = rounds.ratios(variant, base)
    return [
        variant,
        rounds.median(variant, pages_per_s),
        rounds.ratio(variant, base),
        f"{ratios[0]:.2f}-{ratios[-1]:.2f}",
        rounds.ratio(variant, base, pages_per_cpu_s),
    ]


if __name__ == "__main__":
    main()
