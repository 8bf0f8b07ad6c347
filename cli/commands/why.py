"""`trawl why`: the records of one URL, and why it is stored or is not."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from cli.access.addresses import addresses
from cli.access.redis import redis_client, report_nothing_runs, running_url
from cli.views.options import AsJson
from cli.views.output import echo, in_plain_json, print_json
from forums.overview.why import Why
from forums.overview.why import why as look
from forums.storage.read.read_sql import NoData, stored_data
from redis_components.server.printable import in_one_line


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of a page.")],
    as_json: AsJson = False,
) -> int:
    """Explain why a page is stored, or is not: queued, leased, given up, refused, done, or never seen, and what was read from it.

    It looks in the queues, leases, dead letters and thread records in Redis, in the database and in the site files. A queue has
    no index by URL: of each key the first 200,000 entries are read. Ends with 1 where nothing holds the page.

    **Example:**

        trawl why http://127.0.0.1:8000/thread/7
    """
    url = addresses(url)[0]
    if (running := running_url()) is None:
        report_nothing_runs(as_json)
        return 1
    with ExitStack() as stack, redis_client(running) as client:
        try:
            database = stack.enter_context(stored_data())
        except NoData:
            database = None
        found = look(client, database, url)
    if as_json:
        print_json(in_plain_json(found) | {"known": found.is_known})
    else:
        _show(found)
    return 0 if found.is_known else 1


def _show(found: Why) -> None:
    where = [f"site {found.site}" if found.site else "no site"]
    where += [f"thread {found.thread}"] if found.thread else []
    where += [f"board {found.board}"] if found.board else []
    echo(in_one_line(f"{found.url} ({', '.join(where)})"))
    for one in found.findings:
        echo(in_one_line(f"  {one.state}: {one.sentence}"))
    for row in found.rows:
        gone = f", deleted {row.deleted_at:%Y-%m-%d %H:%M:%SZ}" if row.deleted_at else ""
        texts = f", {row.earlier_texts} earlier texts" if row.earlier_texts else ""
        what = f"{row.row} {row.id}, version {row.version}, fetched {row.fetched_at:%Y-%m-%d %H:%M:%SZ}{gone}{texts}"
        echo(in_one_line(f"  stored: {what}: {' '.join(row.shown.split())}"))
    if found.more_rows:
        echo(f"  stored: and {found.more_rows:,} more comments of this page")
    for key in found.cut:
        echo(in_one_line(f"  not all of {key} was searched: it has more than 200,000 entries"))
