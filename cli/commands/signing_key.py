"""`trawl config signing-key`: the key by which sites can recognise the fleet (Web Bot Auth)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cli.views.output import echo, print_json
from redis_components.errors import ConfigError
from workers.http.bot_identity import DIRECTORY, BotIdentity, bot_identity, new_key

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", help="The key by which sites recognise the fleet (Web Bot Auth)."
)


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the private key is written; it must not exist.")],
) -> int:
    """Make a key: the private part goes into FILE, readable by you alone.

    Then set TRAWL_BOT_KEY_FILE=FILE and TRAWL_BOT_AGENT=https://…, the place that serves what `trawl config signing-key show`
    prints.

    **Example:** `trawl config signing-key new bot.pem`
    """
    key = new_key()
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(key)
    except FileExistsError:
        raise ConfigError(f"{file} exists: name another file, a key that sites know should not be lost") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    echo(f"{file}: the private key; sites know it as {BotIdentity(key.decode(), '').key_id}")
    echo(f"Set TRAWL_BOT_KEY_FILE={file.resolve()} and TRAWL_BOT_AGENT=https://…, where its public part is served.")
    return 0


@app.command()
def show() -> int:
    """Print the public key as a site wants it, and where it is to be served. The exporter serves it, too."""
    identity = bot_identity()
    if identity is None:
        raise ConfigError(
            "requests are not signed: make a key with `trawl config signing-key new FILE`, and set the variables that it prints"
        )
    echo(f"{identity.agent.rstrip('/')}{DIRECTORY} is to answer with:", stderr=True)
    print_json(identity.directory())
    return 0
