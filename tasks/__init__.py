"""The fleet's Celery application and its tasks.

from tasks import seed_forums
seed_forums.delay(["python-help", "announcements"], site="example")
"""

import gc

if collecting := gc.isenabled():  # a fifth of a start: the collector would look again and again at modules that stay
    gc.disable()

from .app import app
from .breakers import probe_sites, prune_raw_pages
from .crawling import cancel_crawl, crawl_once
from .deploying import install_version
from .events import notify_alarms, publish_events, sample_fleet
from .fleet import reconcile_fleet, roll_fleet, run_crawler, scale_fleet
from .holding import drain_fleet, drain_site, pause_fleet, pause_site, resume_fleet, resume_site, stop_fleet
from .jobs import cancel_job, crawl
from .seeding import backfill, recheck_threads, refresh_posts, rescan_forum, seed_forums, seed_urls
from .storage import store_items

if collecting:
    gc.enable()

__all__ = [  # noqa: RUF022 - in groups
    "app",
    # sent by users
    "seed_forums",
    "seed_urls",
    "rescan_forum",
    "refresh_posts",
    "backfill",
    "scale_fleet",
    "roll_fleet",
    "crawl",
    "cancel_job",
    "crawl_once",
    "cancel_crawl",
    "pause_fleet",
    "drain_fleet",
    "stop_fleet",
    "resume_fleet",
    "pause_site",
    "drain_site",
    "resume_site",
    # sent by beat
    "reconcile_fleet",
    "store_items",
    "probe_sites",
    "publish_events",
    "notify_alarms",
    "sample_fleet",
    "prune_raw_pages",
    "recheck_threads",
    # sent by trawl deploy
    "install_version",
    # sent by reconcile_fleet
    "run_crawler",
]
