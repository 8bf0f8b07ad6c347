"""The words of the command line: every command with its line of help, the short help, and words of earlier versions.

Needs only the standard library: `trawl --help` is printed before Typer is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

START, CRAWL, LOOK, CHANGE = "Start", "Crawl", "Look", "Change the fleet"
DATA, REPAIR, SETUP = "Data", "Repair and keep", "Set up"

OF_FORUMS = ""
"""Place of the commands that the forum crawl brings (`Application.commands`)."""

COMMANDS = {  # in the order of the help: panel, the function or group in `cli.commands`, and the line of the list
    "init": (START, "init.init", "Make a project: site files, settings, a package for your own spiders."),
    "sites": (START, OF_FORUMS, "Make, try and list site files, remove sites with their data."),
    "watch": (START, OF_FORUMS, "Watch a forum: learn its pages, start everything here, open the page with its posts."),
    "up": (START, "up.up", "Start Redis, a worker with its crawlers, beat, Flower and the exporter here, until Ctrl-C."),
    "doctor": (START, "doctor.doctor", "Check Redis, broker, clocks, database, disks, permissions and site files."),
    "seed": (CRAWL, OF_FORUMS, "Queue forums for a scan, which finds their new and changed threads."),
    "seed-urls": (CRAWL, "seed_urls.seed_urls", "Queue URLs for a spider, in the order of the lines."),
    "job": (CRAWL, "job.app", "Start and manage jobs: crawls with their own queue, shared by several crawlers."),
    "run": (CRAWL, "run.app", "Start and follow runs: groups of spiders, each with a verdict."),
    "schedule": (CRAWL, "schedule.app", "Show and change which tasks beat sends, and how often."),
    "status": (LOOK, "status.status", "Show what needs attention, services, queues, crawlers and the last errors."),
    "forums": (LOOK, OF_FORUMS, "Show how fresh each forum is; rescan forums, refresh posts, fetch history, forget threads."),
    "items": (LOOK, "items.app", "Write the items of a service into a file, a bucket or a database."),
    "logs": (LOOK, "logs.logs", "Show the logs of the crawlers on this machine, sorted by time."),
    "history": (LOOK, "history.history", "Show crawler processes, newest first, and why each ended."),
    "why": (LOOK, OF_FORUMS, "Explain why a page is stored, or is not."),
    "audit": (LOOK, "audit.audit", "Show the commands and tasks that changed something, and who ran them."),
    "health": (LOOK, "doctor.health", "Check that the worker of this machine works; for containers and systemd."),
    "scale": (CHANGE, "scale.scale", "Set the number of crawlers of a service."),
    "autoscale": (CHANGE, "scale.autoscale", "Scale a service automatically between two bounds."),
    "roll": (CHANGE, "deploy.roll", "Replace running crawlers by new processes, one after the other."),
    "limit": (CHANGE, "limit.limit", "Limit the requests that all crawlers together send to a site; show what each gets."),
    "pause": (CHANGE, "hold.pause", "Start no more requests; crawlers stay, and queued requests wait."),
    "drain": (CHANGE, "hold.drain", "Accept no new work; queued requests are crawled to the end."),
    "stop": (CHANGE, "hold.stop", "Stop the crawlers of a service."),
    "resume": (CHANGE, "hold.resume", "End pauses, drains and stops."),
    "services": (CHANGE, "services.app", "Declare services, which run any Scrapy project's spiders; their deployed versions."),
    "deploy": (CHANGE, "deploy.deploy", "Bring a project to the crawlers of a service, and replace them one by one."),
    "search": (DATA, OF_FORUMS, "Search stored posts and comments, the newest first."),
    "sql": (DATA, OF_FORUMS, "Run one SELECT or VALUES on the stored data; read-only."),
    "export": (DATA, OF_FORUMS, "Write stored posts, comments, forums or scans as JSON lines or CSV."),
    "events": (DATA, OF_FORUMS, "Follow stored posts; show outputs, test messages to people, send events again."),
    "alert": (DATA, OF_FORUMS, "Send a message about each new post with a word: by mail, ntfy or a webhook."),
    "read": (DATA, OF_FORUMS, "Show what Trawl reads from a page of any forum."),
    "dead": (REPAIR, "dead.app", "Show, replay and delete requests, items and messages that were given up."),
    "backup": (REPAIR, "backup.app", "Write the fleet's state, queues and database into one file, and restore it."),
    "db": (REPAIR, OF_FORUMS, "Upgrade and move the database."),
    "migrate": (REPAIR, "migrate.app", "Continue a crawl that another package started."),
    "api": (SETUP, "up.api", "Serve the fleet's HTTP API."),
    "mcp": (SETUP, "mcp.mcp", "Answer the questions of programs about fleet and posts (Model Context Protocol)."),
    "config": (SETUP, "config.app", "Show the configuration; print Redis users and systemd units."),
}

SYNONYMS = {"groups": ("run", "groups"), "runs": ("run",), "refresh": ("forums", "refresh"), "upgrade": ("config", "convert")}
"""Words for a command that has another name in the list; `trawl runs` alone lists them."""
GROUPS = {  # groups that do something without a subcommand: their subcommands, the default first
    "forums": ("list", "rescan", "refresh", "backfill", "forget"),
    "run": ("start", "groups", "list", "show", "pause", "resume", "cancel", "rerun", "silence"),
    "dead": ("list", "replay", "purge", "items", "messages"),
    "dead items": ("list", "replay", "purge"),
    "dead messages": ("list", "replay", "purge"),
    "backup": ("create", "restore"),
}
RENAMED = {  # until the release after 0.1
    "jobs": "job",
    "nodes": "status",
    "restore": "backup restore",
    "rescan": "forums rescan",
    "backfill": "forums backfill",
    "forget": "forums forget",
    "consume": "items consume",
    "versions": "services versions",
    "lanes": "limit",
    "reparse": "sites reparse",
    "tail": "events tail",
    "query": "search",
    "acl": "config acl",
    "systemd": "config systemd",
}
HELP = ("-h", "--help")

_CHANGING = {
    *(
        "watch",
        "up",
        "scale",
        "roll",
        "pause",
        "drain",
        "stop",
        "resume",
        "seed",
        "seed-urls",
        "autoscale",
        "limit",
    ),
    *("alert", "sites remove", "sites reparse", "sites forget-rows"),
    *("forums rescan", "forums refresh", "forums backfill", "forums forget"),
    *("backup create", "backup restore"),
    *("schedule set", "schedule enable", "schedule disable", "schedule remove"),
    *(f"dead{kind} {act}" for kind in ("", " items", " messages") for act in ("replay", "purge")),
    *("migrate scrapy-redis", "db upgrade", "db move", "services add", "services remove"),
    *(f"run {act}" for act in ("start", "pause", "resume", "cancel", "rerun", "silence")),
    *("items consume", "job start", "job cancel", "job resume", "deploy", "events replay"),
    *("services versions use", "services versions rollback"),
}
"""`backup create` changes nothing, but takes everything with it."""
_SHOW_WITHOUT_OPTIONS = {"alert", "autoscale", "limit"}


def short_help(arguments: Sequence[str]) -> str | None:
    """Return the help of `trawl`, `trawl --help` and `trawl help`; None for other arguments, and where a shell completes."""
    if "_TRAWL_COMPLETE" in os.environ:
        return None
    if list(arguments) not in ([], ["help"], *([word] for word in HELP)):
        return None
    return (Path(__file__).parent / "templates" / "short_help.txt").read_text("utf-8")


def in_present_words(arguments: Sequence[str]) -> tuple[list[str], str]:
    """Return the arguments in the words of this version, and a warning ("" where they were so already)."""
    words = list(arguments)
    renamed = None
    if words and words[0] in SYNONYMS:
        words[:1] = SYNONYMS[words[0]] if words[1:] or words[0] != "runs" else ("run", "list")
    if words and (new := RENAMED.get(words[0])):
        renamed = words[0], new
        words[:1] = new.split()
    for count in (1, 2):
        name = " ".join(words[:count])
        if name in GROUPS and not (words[count:] and words[count] in (*GROUPS[name], *HELP)):
            words[count:count] = [GROUPS[name][0]]
            if name == "backup" and words[2:]:
                renamed = name, "backup create"
    warning = "`trawl {}` is `trawl {}` now; the old form works until the next release".format(*renamed) if renamed else ""
    return words, warning


def is_changing(arguments: Sequence[str]) -> bool:
    """Return True if the command with these arguments may change something."""
    words = list(arguments)
    if not words or set(HELP) & set(words):
        return False
    for count in (3, 2, 1):
        name = " ".join(words[:count])
        if len(words) >= count and name in _CHANGING:
            return name not in _SHOW_WITHOUT_OPTIONS or any(word[:1] == "-" and word != "--json" for word in words[count:])
    return False
