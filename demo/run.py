"""One run of the demo, from the first process to the last."""

from __future__ import annotations

import sys
import time
import traceback

import redis
from rich.console import Console
from rich.text import Text

from cli.processes.interrupts import Interrupts
from cli.views.output import console as make_console
from redis_components.connection import explain
from redis_components.embedded import redis_url
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.variables import load_env_file, variable

from .leftovers import left_over
from .live import addresses, make_show
from .options import DemoOptions
from .place import RunPlace, trawl_command
from .report import print_report
from .scene import Scene
from .stage import Stage
from .story import Story

TICK_S = 0.2
INTRODUCTION = """\
A forum lives while it is read by Scrapy crawlers that Celery launches and that share one Redis: people post, edit and delete.
A crawler will be killed. In the end every post and comment has to be in the database, once, and every edit and deletion.
"""
DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


def run(interrupts: Interrupts) -> int:
    """Play the demo; returns the exit code."""
    console = make_console()
    try:
        load_env_file()
        options = DemoOptions.from_environment()
        place = RunPlace.fresh()
        story = Story(Scene(Stage(options, place)))
    except TrawlError as error:
        return _failed(error)
    code = FAILED
    try:
        code = _play(story, console, interrupts)
        if options.keep and not interrupts.asked:
            _keep(story, console, interrupts)
    except (TrawlError, redis.RedisError, OSError) as error:
        code = _failed(error)
        print(f"the logs of this run are in {place.shown}/logs", file=sys.stderr)
    finally:
        if not _clean_up(story, console, interrupts):
            code = code or FAILED
    return code


def _play(story: Story, console: Console, interrupts: Interrupts) -> int:
    console.print(INTRODUCTION)
    with make_show(console) as show:
        for _ in story.acts():
            story.scene.look()
            show.show(story.scene)
            if interrupts.asked:
                return INTERRUPTED
            story.stage.tend()
            time.sleep(TICK_S)
    print_report(console, story)
    assert story.coverage
    return DONE if all(one.complete for one in story.coverage) else FAILED


def _keep(story: Story, console: Console, interrupts: Interrupts) -> None:
    """Leave everything running, the forum alive, until Ctrl-C."""
    stage = story.stage
    stage.forum.control(rate=2)
    stage.recheck(True)
    console.print()
    console.print(Text("Everything goes on, and the forum lives again, until Ctrl-C. Look around:", style="bold"))
    trawl = trawl_command()
    for what, how in (
        *addresses(stage),
        ("forum", stage.forum.url),
        ("terminal", f"export TRAWL_DATA_DIR={stage.place.shown} TRAWL_DEMO_URL={stage.forum.url}"),
        ("fleet", f"{trawl} status --watch"),
        ("boards", f"{trawl} forums"),
        ("more", f"{trawl} scale forum_detail=2"),
    ):
        console.print(Text.assemble((f"  {what:<10}", "bold"), how), soft_wrap=True)
    while not interrupts.asked:
        stage.tend()
        time.sleep(TICK_S)


def _clean_up(story: Story, console: Console, interrupts: Interrupts) -> bool:
    """Stop everything and look whether something is left; True when nothing is."""
    console.print()
    console.print("Stopping everything ...", style="dim")
    story.stage.stop(hurry=lambda: interrupts.impatient)
    left = left_over(story.stage.place.mark)
    for line in left:
        print(f"left behind, and killed now: {line}", file=sys.stderr)
    if not left:
        console.print("Everything is stopped; no process is left.", style="dim")
    return not left


def _failed(error: Exception) -> int:
    if variable("TRAWL_DEBUG"):
        traceback.print_exc()
    if isinstance(error, redis.RedisError):
        error = explain(error, redis_url())
    print(f"demo: {' '.join(str(error).split())}", file=sys.stderr)
    return WRONG_USE if isinstance(error, ConfigError) else FAILED
