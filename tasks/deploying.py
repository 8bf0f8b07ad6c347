"""Installs a version of a project on the node that runs the task; `trawl deploy` sends it to each one."""

from __future__ import annotations

from redis_components.connection import connect
from redis_components.errors import TrawlError
from workers.deploy.deploy import install

from .app import app


@app.task(name="trawl.install_version", ignore_result=False)
def install_version(service: str, version: str) -> str:
    """Install the environment of this version here, and load the service in it as a crawler would.

    Returns the fault in one line, "" for none. It is installed only where its wheel has the digest that was deployed.
    """
    try:
        return install(connect(), service, version)
    except TrawlError as error:
        return str(error)
