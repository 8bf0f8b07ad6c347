"""What happens in a small tracker of Roundup, through its own database, and its pages.

    python roundup_world.py populate|change|truth|forums TRACKER
    python roundup_world.py serve TRACKER PORT

Runs in Roundup's own environment. The last line printed is JSON.
"""

import json
import os
import random
import sqlite3
import sys
import time
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server

from roundup import instance
from roundup.cgi.wsgi_handler import RequestDispatcher
from roundup.date import Date

TITLES = ["How do I {0} a {1}?", '<{0}> & {1}: what\'s "right"?', "{1} {0} — ünïcode ✓ 中文", "2 {0} for 1 {1}"]
WORDS = ["crawl", "redis", "forum", "thread", "lease", "bucket", "river", "stone", "kettle", "lantern", "marble", "violin"]
PEOPLE = ["alice", "bob77", "chloe", "dmitri", "eve.smith"]
PARTS = [
    "Signs: 3 < 4 && 5 > 4 in ünïcode 中文 🙂",
    "> a quote\n> of two lines",
    "    for x in range(3):\n        print('x')",
    "See https://example.org/7 too.",
]
HOME, DAY_S = sys.argv[2], 86400


class World:
    """The tracker with the people who write in it; `clock` goes on with each message."""

    def __init__(self, seed: int, begin: float) -> None:
        self.db = instance.open(HOME).open("admin")
        self.dice = random.Random(seed)
        self.clock = begin
        self.number = len(self.db.msg.list())
        self.times: dict[str, list[tuple[Date, str]]] = {}

    def issue(self, replies: int) -> None:
        title = self.dice.choice(TITLES).format(*self.dice.choices(WORDS, k=2))
        issue = self.db.issue.create(title=title, priority=str(self.dice.randint(1, 5)), status=str(self.dice.randint(1, 7)))
        for _ in range(replies + 1):
            self.message(issue)

    def message(self, issue: str) -> None:
        self.number += 1
        words = " ".join(self.dice.choices(WORDS, k=self.dice.randint(5, 60)))
        text = "\n\n".join([f"Number {self.number}: {words}.", *self.dice.sample(PARTS, self.dice.randint(0, 3))])
        writer, at = self.db.user.lookup(self.dice.choice(PEOPLE)), self.tick()
        message = self.db.msg.create(author=writer, date=at, content=text, summary="")
        self.db.issue.set(issue, messages=[*self.db.issue.get(issue, "messages"), message])
        self.times.setdefault(issue, []).append((at, writer))

    def remove(self, issue: str) -> None:
        """Its second message."""
        first, _, *others = self.db.issue.get(issue, "messages")
        self.db.issue.set(issue, messages=[first, *others])
        self.times.setdefault(issue, []).append((self.tick(), "1"))

    def tick(self) -> Date:
        self.clock += self.dice.randint(60, 600)
        return Date(time.strftime("%Y-%m-%d.%H:%M:%S", time.gmtime(self.clock)))

    def finish(self) -> None:
        """Commit; and write down when it was, for Roundup has no other time than now."""
        new = {issue for issue in self.times if len(self.db.issue.get(issue, "messages")) == len(self.times[issue])}
        self.db.commit()
        self.db.close()
        with sqlite3.connect(os.path.join(HOME, "db", "db")) as database:
            for issue, times in self.times.items():
                if issue in new:
                    database.execute("UPDATE _issue SET _creation=?, _creator=? WHERE id=?", (*_stored(times[0]), issue))
                database.execute("UPDATE _issue SET _activity=?, _actor=? WHERE id=?", (*_stored(times[-1]), issue))


def _stored(moment: tuple[Date, str]) -> tuple[str, str]:
    return moment[0].serialise(), moment[1]


def populate() -> None:
    world = World(1, time.time() - 400 * DAY_S)
    for name in PEOPLE:
        world.db.user.create(username=name, address=f"{name}@example.org", roles="User")
    for _ in range(210):
        world.issue(world.dice.choice([0, 0, 1, 2, 3, 5, 8]))
    world.finish()


def change() -> None:
    """New issues and messages, and messages that were removed; nobody can edit one."""
    world = World(2, time.time() - DAY_S)
    issues = world.db.issue.list()
    for replies in range(8):
        world.issue(replies)
    for issue in issues[8:28]:
        world.message(issue)
    for issue in [one for one in issues[40:80] if len(world.db.issue.get(one, "messages")) > 2][:8]:
        world.remove(issue)
    world.finish()


def truth() -> dict:
    """Issues and messages, as a guest may read them."""
    db = instance.open(HOME).open("admin")
    topics, comments = {}, {}
    for issue in db.issue.list():
        first, *others = [(one, told(db, one)) for one in db.issue.get(issue, "messages")]
        topics[f"issue{issue}"] = {"forum_id": "all", "title": db.issue.get(issue, "title"), "replies": None, **first[1]}
        comments |= {one: {"topic_id": f"issue{issue}", **message} for one, message in others}
    return {"topics": topics, "comments": comments}


def told(db: object, message: str) -> dict:
    at = db.msg.get(message, "date").formal(sep=" ")[:16]
    return {"text": db.msg.get(message, "content"), "author": db.user.get(db.msg.get(message, "author"), "username"), "at": at}


def serve() -> None:
    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True

    pages = RequestDispatcher(HOME)
    make_server("127.0.0.1", int(sys.argv[3]), pages, server_class=Server).serve_forever()


def forums() -> list[str]:
    return ["all"]


def main() -> None:
    verbs = {"populate": populate, "change": change, "truth": truth, "forums": forums, "serve": serve}
    print(json.dumps(verbs[sys.argv[1]]()))


main()
