"""A Swarm of three engines, to which the pipeline's own jobs deploy: rolling update and rollback under load, a node lost.

    python -m tests.containers.swarm [--rows FILE] [--report FILE]

Ends with one line where it cannot run: it needs root, an engine with the image's base, and Debian's `docker-registry`. Exit
code 1: a row was lost, or the fleet was without crawlers where it must not be.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.crawler_watch import CrawlerWatch

from . import own_engine
from .__main__ import Rows, say
from .cluster import REGISTRY, Engine, cluster, lacking
from .engine import COMPARE, IMAGES, LOOK_S, ROOT, Failed, docker, missing, run_script, wait
from .pipeline import Runner
from .report import Row, comparison, page
from .watching import Watch, watch

WORKS_S = 20.0
PASSWORD = "of-a-swarm"
MARK = ("TRAWL_REDIS_URL", f"redis://:{PASSWORD}@redis:6379/0")
LIMIT_S = 300.0


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.containers.swarm", description=__doc__.partition("\n")[0])
    parser.add_argument("--only-users", action="store_true", help="only a stack with users of Redis")
    parser.add_argument("--rows", type=Path, help="add the measurements to this file of `python -m tests.containers --rows`")
    parser.add_argument("--report", type=Path, help="write all that is in the file there, as Markdown")
    options = parser.parse_args()
    with own_engine.running():
        if why := lacking() or missing():
            say(f"skipped: {why}")
            return 0
        return measure(options)


def measure(options: argparse.Namespace) -> int:
    """Make the Swarm, go through the steps, report; the exit code."""
    with tempfile.TemporaryDirectory(prefix="trawl-swarm-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        rows = Rows(options.rows or folder / "rows.jsonl")
        plays = (Stage.play_with_users,) if options.only_users else (Stage.play, Stage.play_with_users)
        try:
            own_engine.base_images()
            for play in plays:
                mine = folder / play.__name__
                mine.mkdir()
                mine.chmod(0o755)
                slots = CrawlerWatch(mark=MARK, look_s=LOOK_S)
                with cluster(mine) as engines, slots:
                    play(Stage(mine, engines, rows, slots))
        except Failed as failed:
            say(f"failed: {failed}")
            return 1
        finally:
            if options.report:
                options.report.write_text(page(rows.read()))
        return 1 if any(row.failed for row in rows.read()) else 0


@dataclass
class Stage:
    """The Swarm, the pipeline that deploys to it, and what is seen of the fleet."""

    folder: Path
    engines: list[Engine]
    rows: Rows
    slots: CrawlerWatch
    watched: Watch = field(default_factory=Watch)
    forum: str = ""

    def play(self) -> None:
        """Every step, one after the other."""
        self.prepare()
        runner = self.runner()
        self.step("jobs build and push", lambda: self.built(runner, "1111111"))
        self.step("job deploy of a new stack", lambda: self.first_deploy(runner))
        with watch("-H", self.engines[0].socket, "exec", self.forum) as self.watched:
            wait(self.watched.whole, "every slot has a crawler", LIMIT_S)
            runner.variables["CI_COMMIT_SHORT_SHA"] = self.other("2222222", "LABEL of-a-test=next")
            self.step("job deploy of another image", lambda: runner.run("deploy") and self.images())
            self.step("job rollback", lambda: runner.run("rollback") and self.images())
            self.step("an image that ends at once", lambda: self.ends_at_once(runner))
            self.step("a node lost, its containers included", self.node_lost)

    def play_with_users(self) -> None:
        """The stack with a Redis user for each kind of process; the forum's container, which has none, cannot watch it."""
        self.prepare()
        runner = self.runner()
        self.built(runner, "1111111")
        clone = self.folder / "clone"
        (clone / ".env").write_text(f"TRAWL_REDIS_PASSWORD={PASSWORD}\n")
        done = run_script("deploy/new-users.sh", clone, {**os.environ, "DOCKER_HOST": runner.engines["build"]}, 120)
        if done.returncode:
            raise Failed(f"deploy/new-users.sh: {done.stderr[-300:]}")
        shutil.copy(clone / "deploy/stack.users.yml", clone / "deploy/stack.yml")
        begun = time.monotonic()
        said = self.first_deploy(runner)
        row = Row(kind="swarm", name="job deploy of a new stack, `stack.users.yml`", said=said, seconds=time.monotonic() - begun)
        self.compare(row)
        self.rows.add(row)

    def prepare(self) -> None:
        """What is on the nodes before a stack: Redis's image, the label, and the site file, the same on every node."""
        first, tar = self.engines[0], str(self.folder / "redis.tar")
        docker("save", "-o", tar, IMAGES[1])
        first.docker("load", "-i", tar)
        first.docker("node", "update", "--label-add", "trawl.data=true", first.docker("info", "-f", "{{.Swarm.NodeID}}").strip())
        (self.folder / "sites").mkdir()
        shutil.copy(ROOT / "demo/sites/demo.toml", self.folder / "sites")
        self.folder.chmod(0o755)
        services: dict[str, dict[str, object]] = yaml.safe_load((ROOT / "deploy/stack.yml").read_text())["services"]
        more: dict[str, Any] = {name: {"deploy": {"endpoint_mode": "dnsrr"}} for name in services}
        for name in ("worker-list", "worker-detail"):
            more[name] = {"deploy": {"endpoint_mode": "dnsrr", "replicas": 2}}
        more["forum"] = {
            "image": "${TRAWL_IMAGE}:1111111",
            "command": "python -m demo.forum --host=0.0.0.0 --port=8765 --forums=4 --rate=2",
            "environment": {"TRAWL_REDIS_URL": f"redis://:{PASSWORD}@redis:6379/0"},
            "healthcheck": {"disable": True},  # the image's is a worker's
            "networks": ["default", "redis"],  # the fleet is watched from it
            "deploy": {"endpoint_mode": "dnsrr", "placement": {"constraints": ["node.labels.trawl.data == true"]}},
        }
        (self.folder / "more.yml").write_text(yaml.safe_dump({"version": "3.9", "services": more}))

    def runner(self) -> Runner:
        """A runner whose jobs build on this machine's engine and push and deploy by the first node's."""
        key = self.folder / "key"
        key.write_text(f"{secrets.token_hex(32)}\n")
        here = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        there = self.engines[0].socket
        return Runner(
            folder=self.folder,
            engines={"build": here, "push": there, "deploy": there, "rollback": there},
            more={"build": [*own_engine.build_arguments()], "stack deploy": ["-c", str(self.folder / "more.yml")]},
            variables={
                "CI_REGISTRY": REGISTRY,
                "CI_REGISTRY_IMAGE": f"{REGISTRY}/trawl",
                "CI_REGISTRY_USER": "someone",
                "CI_REGISTRY_PASSWORD": "of-a-test",
                "TRAWL_REDIS_PASSWORD": PASSWORD,
                "FLOWER_BASIC_AUTH": f"a:{PASSWORD}",
                "TRAWL_SIGNING_KEY": str(key),
                "DEPLOY_HOST": "someone@n1",
                "DEPLOY_SSH_KEY": str(key),
                "DEPLOY_KNOWN_HOSTS": str(key),
                "DEPLOY_SITES_DIR": str(self.folder / "sites"),
            },
        )

    def step(self, name: str, act: Callable[[], str]) -> None:
        """One step: its seconds, the pages meanwhile, and the seconds with fewer crawlers or none."""
        if self.forum:
            time.sleep(WORKS_S)
        pages, begun = self.served(), time.monotonic()
        self.slots.forget()
        row = Row(kind="swarm", name=name)
        try:
            row.said = act()
            row.seconds = time.monotonic() - begun
            if self.watched.seen:
                row.said += f"; whole {wait(self.watched.whole, 'every slot has a crawler', LIMIT_S):.0f} s after"
        except Failed as failed:
            row.said, row.failed = str(failed).replace("\n", " "), True
        row.pages = self.served() - pages
        row.crowded_s = self.slots.crowded_s()
        if self.watched.seen:
            row.reduced_s, row.without_s = self.slots.fewer_s(self.desired()), self.slots.fewer_s(1)
            self.compare(row)
        self.rows.add(row)
        if row.failed and not self.forum:
            raise Failed(f"{name}: {row.said}")

    def built(self, runner: Runner, commit: str) -> str:
        """Jobs build and push, of a commit."""
        runner.variables["CI_COMMIT_SHORT_SHA"] = commit
        runner.clone()
        runner.run("build")
        runner.run("push")
        (self.folder / "clone/image/trawl.tar").unlink()
        return f"{REGISTRY}/trawl:{commit}"

    def other(self, commit: str, *lines: str) -> str:
        """An image on top of the first one, pushed under the name of another commit."""
        image, first = f"{REGISTRY}/trawl", self.engines[0]
        given = "\n".join((f"FROM {image}:1111111", *lines, ""))
        first.docker("build", "-q", "-t", f"{image}:{commit}", "-", given=given)
        first.docker("push", "-q", f"{image}:{commit}")
        return commit

    def first_deploy(self, runner: Runner) -> str:
        """Job deploy where nothing runs; the forum's container, from which the fleet is watched."""
        runner.run("deploy")
        first = self.engines[0]
        name = ("ps", "-q", "--filter", "label=com.docker.swarm.service.name=trawl_forum")
        wait(lambda: bool(first.docker(*name).strip()), "the forum's container", LIMIT_S)
        self.forum = first.docker(*name).strip()
        return self.images()

    def ends_at_once(self, runner: Runner) -> str:
        """Job deploy of an image whose containers end: Swarm has to go back on its own."""
        runner.variables["CI_COMMIT_SHORT_SHA"] = self.other("3333333", 'ENTRYPOINT ["false"]')
        try:
            runner.run("deploy")
        except Failed as failed:
            return f"job deploy fails ({str(failed).strip().splitlines()[-1][:120]}); {self.images()}"
        raise Failed(f"job deploy does not fail; {self.images()}")

    def node_lost(self) -> str:
        """SIGKILL of an engine without a volume of the stack, and of all that it runs; it stays away."""
        begun, last = time.monotonic(), self.engines[-1]
        names = last.docker("ps", "--format", '{{.Label "com.docker.swarm.service.name"}}').split()
        last.lost()
        wait(lambda: self.slots.fewer_s(self.desired()) > 0 or time.monotonic() - begun > 60, "the loss is noticed", 90)
        return f"it ran {', '.join(sorted(names)) or 'nothing'}"

    def desired(self) -> int:
        """Crawlers that the fleet should have."""
        return max((one.desired for one in self.watched.seen), default=1)

    def images(self) -> str:
        """Image and state of the last update of each service that has the fleet's image."""
        first, found = self.engines[0], []
        for name in first.docker("service", "ls", "--format", "{{.Name}}").split():
            shown = "{{.Spec.TaskTemplate.ContainerSpec.Image}} {{with .UpdateStatus}}{{.State}}{{end}}"
            image, state = first.docker("service", "inspect", name, "-f", shown).split(" ")
            if "/trawl:" in image and not name.endswith("forum"):
                found.append(f"{image.rpartition('/trawl:')[2].partition('@')[0]} {state.strip()}".strip())
        return "; ".join(f"{count} services {what}" for what, count in Counter(found).items())

    def served(self) -> int:
        """Pages that the forum has served."""
        code = "import json, urllib.request as u; print(json.load(u.urlopen('http://127.0.0.1:8765/stats', timeout=20))['total'])"
        return int(self.engines[0].docker("exec", self.forum, "python", "-c", code)) if self.forum else 0

    def compare(self, row: Row) -> None:
        """The database against the frozen forum, after a step."""
        first = self.engines[0]
        name = first.docker("ps", "-q", "--filter", "label=com.docker.swarm.service.name=trawl_worker-control").split()[0]
        after = comparison("", "", first.docker("exec", name, "sh", "-c", COMPARE, limit_s=600))
        row.compared, row.failed = after.compared, row.failed or after.failed or row.without_s > 0 or bool(row.crowded_s)


if __name__ == "__main__":
    sys.exit(main())
