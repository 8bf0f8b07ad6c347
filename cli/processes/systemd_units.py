"""systemd units for a host without containers: worker, beat, Flower, exporter and API of one checkout or installation. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.process.status_file import WATCHDOG_S


@dataclass(frozen=True, kw_only=True)
class Host:
    """What the units need to know."""

    project: Path  # the working directory: `.env`, `scrapy.cfg`, `sites/`
    data: Path  # TRAWL_DATA_DIR
    user: str
    stop_s: int  # from SIGTERM to SIGKILL
    commands: Mapping[str, Sequence[str]]  # role -> program and arguments


_DESCRIPTIONS = {
    "worker": "Trawl: a node, which hosts crawlers and runs the fleet's tasks",
    "beat": "Trawl: the clock; several of them may run, one sends",
    "flower": "Trawl: Flower, on this machine only",
    "exporter": "Trawl: metrics and status page, on this machine only",
    "api": "Trawl: the HTTP API, on this machine only",
}
_WORKER = """\
# Only the worker is told to stop, it tells its crawlers; what is left after TimeoutStopSec is killed.
KillMode=mixed
# A crawler that runs out of memory ends alone.
OOMPolicy=continue
TasksMax=4096
"""
_WATCHDOG = f"""\
# Each line of its status file is a datagram for the watchdog: one that hangs sends none, is killed and started again.
NotifyAccess=main
WatchdogSec={WATCHDOG_S:.0f}
WatchdogSignal=SIGKILL
"""
_UNIT = """\
[Unit]
Description={description}
After=network-online.target
Wants=network-online.target
PartOf=trawl.target

[Service]
User={user}
WorkingDirectory={project}
ExecStart={command}
Restart=always
RestartSec=2
TimeoutStopSec={stop_s}
{more}Environment=PYTHONUNBUFFERED=1
NoNewPrivileges=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectSystem=strict
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
ReadWritePaths={data}
LimitNOFILE=65536

[Install]
WantedBy=trawl.target
"""
_TARGET = """\
[Unit]
Description=Trawl: a crawl fleet's processes on this machine
Wants={services}

[Install]
WantedBy=multi-user.target
"""


def units(host: Host) -> dict[str, str]:
    """File name -> content; `trawl.target` starts and stops all the others."""
    found = {f"trawl-{role}.service": _unit(host, role, command) for role, command in host.commands.items()}
    return {**found, "trawl.target": _TARGET.format(services=" ".join(found))}


def _unit(host: Host, role: str, command: Sequence[str]) -> str:
    return _UNIT.format(
        description=_DESCRIPTIONS[role],
        user=host.user,
        project=_path(host.project),
        command=" ".join(map(_word, command)),
        stop_s=host.stop_s,
        more=(_WORKER if role == "worker" else "") + (_WATCHDOG if role in ("worker", "beat") else ""),
        data=_word(str(host.data)),
    )


def _path(path: Path) -> str:
    """For WorkingDirectory, which takes the whole line."""
    return str(path).replace("%", "%%")


def _word(text: str) -> str:
    """One word of a command line in systemd's quoting: `%` and `$` mean something there."""
    text = text.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$")
    return f'"{text.replace(chr(34), chr(92) + chr(34))}"' if any(one in text for one in " \t'\"") else text
