"""`trawl run`: runs of groups of spiders, with a verdict for each member."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import redis
import typer

from cli.access import redis_client
from cli.views.options import AsJson, SpiderArguments, Wait, command_group
from cli.views.output import complain, duration, echo, iso, print_json, report
from cli.views.tables import Column, Columns, figure, show
from fleet_operations.jobs import runs
from fleet_operations.jobs.groups import ALL, Group, groups_in_file, members_of
from fleet_operations.jobs.spider_list import project_spiders
from redis_components.errors import ConfigError
from redis_components.server.untrusted_values import server_time
from workers.crawler.orders import pairs
from workers.fleet.holds import who
from workers.state.group_runs import GroupRun, GroupRuns, Verdict

from .job import until_ended

app = command_group()
Run = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run; latest, or a group: the newest one.")]


@app.command()
def start(
    spiders: Annotated[
        list[str] | None, typer.Argument(metavar="[SPIDER]...", help="Names or patterns, in place of a group.")
    ] = None,
    group: Annotated[str, typer.Option("--group", metavar="NAME", help="A group of trawl.toml.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Every spider of the project.")] = False,
    arguments: SpiderArguments = None,
    at_once: Annotated[int, typer.Option("--at-once", metavar="N", min=0, max=1000, help="Members that crawl at a time.")] = 0,
    wait: Wait = False,
    as_json: AsJson = False,
) -> int:
    """Start a run: each member crawls once, as a job, and has a verdict when it is over.

    Whether a run begins while the last one of the group goes on is decided by the group's `overlap`. With `--wait` the exit code
    is 1 unless all verdicts are sound.

    **Examples:**

        trawl run --group brands
        trawl run --all --at-once 20 --wait
        trawl run "shop_*"
    """
    if bool(spiders) + bool(group) + everything != 1:
        raise ConfigError("name either a group (--group NAME), spiders, or --all")
    if spiders:
        order = runs.order_of("spiders", Group(spiders=tuple(spiders), overlap="queue"), by=who())
    else:
        order = runs.order(group or ALL, by=who())
    order = replace(order, at_once=at_once, arguments=pairs("-a", arguments))
    with redis_client() as client:
        asked_at = server_time(client)
        run = runs.start(client, order)
        if run.started_at < asked_at:
            complain(f"{run.id} is {run.state}: no other run of {run.group} begins (overlap = {order.declared.overlap!r})")
        if not (as_json or wait):
            complain(f"{run.members} members; trawl run show {run.id} shows their verdicts")
        return follow(client, run, as_json) if wait else _changed(run, as_json, run.id)


@app.command("groups")
def list_groups(as_json: AsJson = False) -> int:
    """List the groups of trawl.toml with their members and their last run. Imports the project."""
    declared = groups_in_file()
    listed = {project: project_spiders(project) for project in {group.project for group in declared.values()}}
    rows = []
    with redis_client() as client:
        known = GroupRuns(client)
        for name, group in declared.items():
            last = next(iter(known.newest(name)), None)
            members = members_of(group, listed[group.project].spiders)
            rows.append({"group": name, "members": members, "cron": group.cron, "timezone": group.timezone, "last": last})
    columns: Columns = {
        "GROUP": "group",
        "MEMBERS": lambda row: f"{len(row['members']):,}",
        "CRON": lambda row: f"{row['cron']} {row['timezone']}" if row["cron"] else "",
        "LAST RUN": lambda row: f"{row['last'].id}: {row['last'].sentence()}" if row["last"] else "never",
    }
    show(rows, columns, as_json)
    broken = {module: reason for one in listed.values() for module, reason in one.broken.items()}
    for module, reason in sorted(broken.items())[:10]:
        complain(f"{module} cannot be imported, and its spiders are left out: {reason}")
    return 0


@app.command("list")
def list_runs(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Of one group only.")] = "", as_json: AsJson = False
) -> int:
    """List the runs, the newest first."""
    with redis_client() as client:
        found, now = GroupRuns(client).newest(group), server_time(client)
    columns: Columns = {
        "RUN": "run",
        "STATE": "state",
        "MEMBERS": "members",
        "SOUND": lambda row: sum(n for verdict, n in row["counts"].items() if Verdict(verdict).sound),
        "STARTED": lambda row: iso(row["started_at"])[:16],
        "TOOK": lambda row: duration((row["ended_at"] or now) - row["started_at"]),
    }
    show([runs.run_fields(run) for run in found], columns, as_json)
    return 0


@app.command("show")
def show_run(
    name: Run = runs.LATEST_RUN,
    wait: Wait = False,
    as_json: AsJson = False,
) -> int:
    """Show the members of a run with their verdicts: those that an operator should look at first.

    With --json each member has its page, fields and traceback. The page of the run shows its last runs and its log, too.
    """
    with redis_client() as client:
        run = runs.run_named(client, name)
        return follow(client, run, as_json) if wait else _show(client, run, as_json)


@app.command()
def pause(name: Run, as_json: AsJson = False) -> int:
    """Let no member of a run crawl; those that do finish their pages in flight, and go on later where they stopped."""
    with redis_client() as client:
        return _changed(runs.pause(client, name, by=who()), as_json)


@app.command()
def resume(name: Run, as_json: AsJson = False) -> int:
    """Go on with a paused run."""
    with redis_client() as client:
        return _changed(runs.resume(client, name), as_json)


@app.command()
def cancel(name: Run, as_json: AsJson = False) -> int:
    """End a run: members that crawl finish their pages in flight, the others do not begin."""
    with redis_client() as client:
        return _changed(runs.cancel(client, name, reason=f"cancelled by {who()}"), as_json)


@app.command()
def rerun(
    name: Run,
    failed: Annotated[bool, typer.Option("--failed", help="Only members whose verdict is not sound.")] = False,
    wait: Wait = False,
    as_json: AsJson = False,
) -> int:
    """Start a run with the members of one that is over."""
    with redis_client() as client:
        run = runs.rerun(client, name, failed=failed, by=who())
        return follow(client, run, as_json) if wait else _changed(run, as_json, run.id)


@app.command()
def silence(
    spider: Annotated[str, typer.Argument(metavar="SPIDER", help="A member of runs.")],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="What is known to be broken.")] = "",
    off: Annotated[bool, typer.Option("--off", help="Raise alerts for its verdicts again.")] = False,
    as_json: AsJson = False,
) -> int:
    """Raise no alert for a member that is known to be broken; its verdicts are shown with the reason."""
    if bool(why) == off:
        raise ConfigError("give a reason (--why TEXT), or --off")
    with redis_client() as client:
        text = f"known broken since {iso(server_time(client))[:10]}, silenced by {who()}: {why}" if why else ""
        GroupRuns(client).silence(spider, text)
    report(as_json, {"spider": spider, "silenced": text}, f"{spider}: {text or 'raises alerts again'}")
    return 0


def follow(client: redis.Redis, run: GroupRun, as_json: bool) -> int:
    """Wait for the end of a run and show it; return the exit code."""
    run = until_ended(run, lambda: runs.run_named(client, run.id), as_json)
    _show(client, run, as_json)
    return 0 if all(Verdict(verdict).sound for verdict in run.counts) else 1


def _show(client: redis.Redis, run: GroupRun, as_json: bool) -> int:
    known = GroupRuns(client)
    ended, crawling, waiting = known.members(run.id), known.crawling(run.id), known.waiting(run.id)
    rows = sorted(ended.values(), key=lambda one: (not one.alerting, one.verdict, one.spider))
    if as_json:
        print_json({**runs.run_fields(run), "members": runs.member_fields(client, run)})
        return 0
    echo(f"{run.id}: {run.sentence()}")
    echo(f"started {iso(run.started_at)} by {run.by or '?'}{f', ended {iso(run.ended_at)}' if run.ended_at else ''}")
    if run.deadline_at:
        by = f": {run.late_by}" if run.late_by else ""
        late = f"; at this pace it ends {iso(run.late)}, which is too late{by}" if run.late else ""
        echo(f"deadline {iso(run.deadline_at)}{late}")
    if crawling:
        echo(f"crawling: {', '.join(sorted(crawling)[:20])}{' and more' if len(crawling) > 20 else ''}; {len(waiting)} wait")
    columns = (
        Column("MEMBER", "spider"),
        Column("VERDICT", "verdict"),
        figure("PAGES", "pages", rank=2),
        figure("ITEMS", "items"),
        figure("TOOK", lambda row: duration(row["seconds"]), rank=3),
        Column("REASON", lambda row: row["silenced"] or row["reason"], least=20, below=True),
    )
    if rows:
        show([vars(one) for one in rows], columns, False)
    return 0


def _changed(run: GroupRun, as_json: bool, line: str = "") -> int:
    report(as_json, runs.run_fields(run), line or f"{run.id}: {run.state}")
    return 0
