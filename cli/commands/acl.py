"""`trawl acl`: Redis users with the least rights for each process of the fleet."""

from __future__ import annotations

import secrets
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from cli.views.output import say


def acl(
    services: Annotated[
        list[str] | None,
        typer.Option("--service", metavar="NAME", help="Only a user for the crawlers of this service; may be repeated."),
    ] = None,
    feeds: Annotated[
        str | None, typer.Option(metavar="NAME", help="The service that those of --service make start tasks for.")
    ] = None,
    passwords: Annotated[
        Path | None,
        typer.Option("--passwords", metavar="FILE", help="Write new passwords into this new file; only its owner may read it."),
    ] = None,
    aclfile: Annotated[bool, typer.Option("--aclfile", help="Print lines of an aclfile instead of commands.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Print Redis users for crawler, worker, beat, exporter, Flower and people, each with the keys and commands that it needs.

    Nothing is changed in Redis. Without --passwords the lines have PASSWORD in their place; with it they have the SHA-256 of new
    ones. A process gets its user by TRAWL_REDIS_URL in its environment, redis://beat:PASSWORD@host:6379/0. A namespace is needed.

    With --service the user is `crawler-NAME`, which reads and writes the keys of that service and no other's (Redis 7). A worker
    gives it to the crawlers that it starts: TRAWL_REDIS_USERS names the file of --passwords.

    **Examples:**

        TRAWL_NAMESPACE=job42 trawl acl
        TRAWL_NAMESPACE=job42 trawl acl --passwords users.txt | redis-cli --user default
        TRAWL_NAMESPACE=job42 trawl acl --service books --passwords books.txt | redis-cli --user default
    """
    from cli.access.acl_roles import FEEDS, roles, service_role
    from cli.views.output import print_json
    from redis_components.keys import CrawlKeys
    from redis_components.names import service_name
    from workers.fleet.sizes import default_fleet

    if feeds is not None and not services:
        raise typer.BadParameter("--feeds goes with --service")
    if services:
        made = [service_role(service_name(service), feeds or FEEDS.get(service)) for service in services]
    else:
        made = roles(CrawlKeys.for_spider(service) for service in default_fleet())
    given = {role.name: secrets.token_urlsafe(24) for role in made} if passwords else {}
    if passwords:
        _keep(passwords, given)
    rules = {
        role.name: role.rules(f"#{sha256(given[role.name].encode()).hexdigest()}" if given else ">PASSWORD") for role in made
    }
    if as_json:
        print_json([{"user": role.name, "purpose": role.purpose, "rules": rules[role.name]} for role in made])
        return 0
    for role in made:
        if not aclfile and not passwords:
            say(f"# {role.purpose}")
        say(f"{'user' if aclfile else 'ACL SETUSER'} {role.name} {' '.join(rules[role.name])}")
    return 0


def _keep(file: Path, given: dict[str, str]) -> None:
    import os

    from redis_components.embedded.private_files import FILE
    from redis_components.errors import ConfigError

    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}: name a file that does not exist yet") from error
    with os.fdopen(handle, "w") as stream:
        stream.writelines(f"{name} {password}\n" for name, password in given.items())
