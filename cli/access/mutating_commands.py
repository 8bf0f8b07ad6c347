"""Which commands change something, by their words; cheap to import, for every command asks."""

from __future__ import annotations

from collections.abc import Sequence

CHANGING = {
    *("up", "scale", "roll", "pause", "drain", "stop", "resume", "crawl", "seed", "seed-urls", "rescan", "backfill", "forget"),
    *("autoscale", "limit", "dupefilter", "reparse", "restore", "backup"),
    *("schedule set", "schedule enable", "schedule disable", "schedule remove", "schedule run"),
    *("dead replay", "dead purge", "dead items", "dead messages", "migrate scrapy-redis", "db upgrade", "db move"),
    *(
        "services add",
        "services remove",
        "services forget-group",
        "consume",
        "run",
        "jobs cancel",
        "jobs resume",
        "jobs rerun",
        *("deploy", "versions use", "versions rollback", "versions remove"),
        "events replay",
    ),
}
"""`backup` changes nothing, but takes everything with it."""
_SHOWS_WITHOUT_OPTIONS = {"autoscale", "limit", "dupefilter", "dead items", "dead messages"}
_WITH_OPTION = {"doctor": "--repair"}
_NO_CHANGE = {"--json", "--history", "-h", "--help"}
_ONLY_SAYS = {"-h", "--help", "--dry-run"}


def changes(arguments: Sequence[str]) -> bool:
    """Whether the command with these arguments may change something."""
    words = words_of_command(arguments)
    if not words or _ONLY_SAYS & set(words):
        return False
    for count in (2, 1):
        name = " ".join(words[:count])
        if len(words) >= count and name in CHANGING:
            return name not in _SHOWS_WITHOUT_OPTIONS or bool(set(words[count:]) - _NO_CHANGE)
    return _WITH_OPTION.get(words[0], "") in words


def words_of_command(arguments: Sequence[str]) -> list[str]:
    """The arguments without `--namespace NAME` before the command."""
    words = list(arguments)
    while words and words[0].startswith("--namespace"):
        words = words[1 if "=" in words[0] else 2 :]
    return words
