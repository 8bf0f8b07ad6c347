"""Scrapy's settings for any spider of the fleet, a reason for each line; at the end those of the application are taken over.
`docs/reference/settings.md` lists those that are Trawl's own.

The environment overrides what differs from machine to machine: TRAWL_REDIS_URL, TRAWL_NAMESPACE, TRAWL_MAX_QUEUED_THREADS,
TRAWL_LOG_LEVEL, TRAWL_ALLOW_PRIVATE.
"""

from __future__ import annotations

from importlib.util import find_spec

from scrapy.settings import default_settings

from redis_components.embedded import redis_url
from redis_components.server.names import fleet_namespace
from redis_components.server.variables import load_env_file

from .application import application
from .environment.machine import container_bytes, memory_share_mb
from .environment.variables import Crawlers, Fleet

load_env_file()  # `scrapy crawl` is a program, too
_VARIABLES = Crawlers.read()

BOT_NAME = "trawl"
SPIDER_MODULES: list[str] = []  # the application's, below

# The shared frontier.
REDIS_URL = redis_url()  # read when a crawl begins; starts the embedded server where no TRAWL_REDIS_URL is given
REDIS_NAMESPACE = fleet_namespace()
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
STATS_CLASS = "redis_components.stats.RedisStatsCollector"
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
SCHEDULER_MAX_FED_TASKS = _VARIABLES.max_queued_threads  # threads of one site that wait; more are kept by their ids
SCHEDULER_PERSIST = True  # a continuous crawl is never over: closing one crawler must not delete what the others work on

# Politeness towards one site is in its file (`politeness`); these are the bounds of a crawler.
ROBOTSTXT_OBEY = True  # a site file may override it (`politeness.obey_robots`)
CONCURRENT_REQUESTS = 32
CONCURRENT_REQUESTS_PER_DOMAIN = 32  # a fleet crawls few sites, each with many pages; Scrapy's 8 is for one crawler of many sites
DOWNLOAD_TIMEOUT = 30  # s; a forum page that takes longer is tried again, Scrapy's 180 s would hold a place for minutes
RETRY_TIMES = 4  # a busy forum answers 500 and 429 in bursts
# Scrapy's without an error of proxies in Twisted's client: to name it loads that client, a tenth of a crawler's start.
RETRY_EXCEPTIONS = [error for error in default_settings.RETRY_EXCEPTIONS if not str(error).endswith(".TunnelError")]
RETRY_HTTP_CODES = [408, 429, 500, 502, 503, 504, 522, 524]
DOWNLOAD_WARNSIZE = 2 * 1024 * 1024  # Scrapy's 32 MiB would never be reached on a forum
DOWNLOAD_MAXSIZE = 8 * 1024 * 1024  # no forum page is larger, and the worst page of that size is read within WATCHDOG_TIMEOUT
# Pages that wait to be read: with more bytes no request of any site is started. Scrapy's 5 MB are two pages of a hostile site,
# which are read in a process apart for up to a minute; a site has two places in a crawler.
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 8 * DOWNLOAD_MAXSIZE

# Speed: `python -m benchmarks.frontier.settings_share` measures the share of each of these.
CONCURRENT_ITEMS = 4  # Scrapy starts this many tasks for each response; its 100 halve the pages per second
EXTENSIONS = {"redis_components.extensions.GarbageCollection": 0}
GC_THRESHOLD = [50_000, 50, 50]  # Python's default of 700 looks through the youngest objects several times for each page
COOKIES_ENABLED = False  # the forums are read without a login
HTTPPROXY_ENABLED = False  # sites are reached directly; `http_proxy` in the environment of a node is ignored
METAREFRESH_ENABLED = False  # it searches each page's HTML for a redirect
REFERER_ENABLED = False  # a site need not know where we came from; and a request in Redis could name a class for it to import
ASYNCIO_EVENT_LOOP = "uvloop.Loop" if find_spec("uvloop") else None  # libuv's loop; there is none for Windows

# Safety: who can write to Redis must not make a crawler read files.
DOWNLOAD_HANDLERS = {
    # and speed: a fifth more pages than with Twisted's client; it caches DNS too
    "http": "workers.http.client.DownloadHandler",
    "https": "workers.http.client.DownloadHandler",
    "file": None,
    "ftp": None,
    "s3": None,
    "data": None,
}
ALLOW_PRIVATE_ADDRESSES = _VARIABLES.allow_private  # a name's owner must not choose an address in our network
DOWNLOADER_MIDDLEWARES = {  # of any spider; those of the forum spiders are in `forums/spiders/base.py`
    "redis_components.scrapy_glue.conditional.ConditionalRequests": 940,  # 304; innermost
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,  # the next one in its place
    "redis_components.scrapy_glue.robots.RobotsTxt": 100,  # once for the fleet; Scrapy's lets waiting pages pass
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,  # the next one in its place
    "workers.http.client.RedirectWithoutReferer": 600,
    "redis_components.scrapy_glue.retry_after.RetryAfterMiddleware": 555,  # 429: every crawler leaves the site alone
    "workers.breaker.hosts.HostWatch": 561,  # a host that puts up a wall: after redirects and decompression, before a retry
}
# Both of these would let any client of the port run code in the crawler, and Scrapy has them on.
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
MEMUSAGE_ENABLED = False  # it reads ru_maxrss, which a child inherits from its parent; the two limits below look at the process

# Limits of one crawler process (`workers/crawler/setting_types.py`). It needs 80 MiB, and with 32 large pages in flight some
# hundred. 1024 and 2048, in a container with a memory limit each crawler's share of that, so that one number sets both.
CRAWLER_MEMORY_HARD_MB = memory_share_mb(Fleet.read().node_crawlers, container_bytes())  # it is ended at once, before the kernel
# ends something else on the node.
CRAWLER_MEMORY_SOFT_MB = min(1024, CRAWLER_MEMORY_HARD_MB * 3 // 4)  # a leak: its pages are finished, a fresh process takes over

# Logs: one line per event that an operator acts on.
LOG_LEVEL = _VARIABLES.log_level
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
LOG_DATEFORMAT = "%Y-%m-%d %H:%M:%S"
LOG_VERSIONS: list[str] = []  # a restarted crawler must not fill its log with the versions of its libraries
LOGSTATS_INTERVAL = 60.0
STATS_DUMP = False  # the stats are in Redis

globals().update(application().scrapy_settings())  # such as its spiders
