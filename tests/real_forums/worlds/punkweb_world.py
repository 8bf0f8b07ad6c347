"""What happens in the small PunkwebBB, through its own models.

    python punkweb_world.py found|populate|change|truth|forums

Runs in that forum's own environment. The last line printed is JSON.
"""

import html
import json
import random
import re
import sys
from datetime import timedelta

import django

django.setup()

from django.contrib.auth.models import User
from django.utils import timezone
from punkweb_bb.models import BoardProfile, Category, Post, Subcategory, Thread
from punkweb_bb.templatetags.render import render

TITLES = ["How do I {0} a {1}?", '<{0}> & {1}: what\'s "right"?', "{1} {0} — ünïcode ✓ 中文", "2 {0} for 1 {1}"]
WORDS = ["crawl", "redis", "forum", "thread", "lease", "bucket", "river", "stone", "kettle", "lantern", "marble", "violin"]
NAMES = ["alice", "Bob_77", "Chloé", "dmitri", "eve.smith", "王小明"]
BOARDS = {"General": ["News", "Help wanted"], "Other": ["Off topic"]}
START = timezone.now() - timedelta(days=400)


class World:
    """The forum with the people who write in it; `clock` goes on with each post."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.number = Thread.objects.count() + Post.objects.count()
        self.users = list(User.objects.order_by("id"))
        self.boards = list(Subcategory.objects.order_by("order"))
        last = Thread.objects.order_by("-last_post_created_at").first()
        self.clock = last.last_post_created_at if last else START

    def thread(self, replies: int) -> Thread:
        title = self.dice.choice(TITLES).format(*self.dice.choices(WORDS, k=2))
        board, at = self.dice.choice(self.boards), self.tick()
        thread = Thread.objects.create(subcategory=board, user=self.writer(), title=title, content=self.text())
        Thread.objects.filter(id=thread.id).update(created_at=at, last_post_created_at=at)
        for _ in range(replies):
            self.reply(thread)
        return thread

    def reply(self, thread: Thread) -> None:
        thread.refresh_from_db()
        at = self.tick()
        post = Post.objects.create(thread=thread, user=self.writer(), content=self.text())
        Post.objects.filter(id=post.id).update(created_at=at)
        Thread.objects.filter(id=thread.id).update(last_post_created_at=at)

    def tick(self) -> timezone.datetime:
        self.clock += timedelta(seconds=self.dice.randint(60, 6000))
        return self.clock

    def writer(self) -> User:
        return self.dice.choice(self.users)

    def text(self) -> str:
        """BBCode: paragraphs, a quote, code, a link, signs that HTML escapes."""
        self.number += 1
        words = " ".join(self.dice.choices(WORDS, k=self.dice.randint(5, 60)))
        parts = [
            "[b]bold[/b] and more of 3 < 4 && 5 > 4 in ünïcode 中文 🙂",
            "[quote]a quote[/quote]",
            "[code]for x in range(3):\n    print('x')[/code]",
            "See [url=https://example.org/7]the page[/url] too.",
        ]
        return "\n\n".join([f"Number {self.number}: {words}.", *self.dice.sample(parts, self.dice.randint(0, 3))])


def found() -> None:
    """The empty forum: people, some with signatures, and three boards in two categories."""
    for number, name in enumerate(NAMES):
        user = User.objects.create_user(name, f"m{number}@example.com", "password")
        profile, _ = BoardProfile.objects.get_or_create(user=user)
        profile.signature = f"Signature of {name}: be [b]kind[/b]." if number % 2 else ""
        profile.save()
        User.objects.filter(id=user.id).update(date_joined=START - timedelta(days=30 * number + 3))
    for place, (title, boards) in enumerate(BOARDS.items()):
        category = Category.objects.create(name=title, slug=slug(title), order=place)
        for order, name in enumerate(boards):
            Subcategory.objects.create(category=category, name=name, slug=slug(name), order=order, description=f"On {name}")


def slug(name: str) -> str:
    return name.lower().replace(" ", "-")


def populate() -> None:
    world = World(1)
    threads = [world.thread(world.dice.choice([0, 0, 1, 2, 3, 5, 8, 27 if n % 20 == 0 else 1])) for n in range(210)]
    Thread.objects.filter(id__in=[one.id for one in threads[3:6]]).update(is_pinned=True)
    Thread.objects.filter(id__in=[one.id for one in threads[5:9]]).update(is_closed=True)
    for post in list(Post.objects.order_by("created_at"))[10:90:6]:
        post.delete()


def change() -> None:
    """A little of everything, on threads that were there before."""
    world = World(2)
    threads = list(Thread.objects.filter(is_closed=False).order_by("created_at"))
    for replies in range(8):
        world.thread(replies)
    for thread in threads[8:28]:
        world.reply(thread)
    for thread in threads[40:50]:
        edit(thread)
        for post in list(thread.posts.all())[-1:]:
            edit(post)
    for post in [thread.posts.first() for thread in threads[50:60]]:
        if post is not None:
            post.delete()
    for thread in threads[60:63]:
        thread.delete()


def edit(one: Thread | Post) -> None:
    one.content += "\n\nEdited since."
    one.save()


def truth() -> dict:
    """Threads and posts, as a guest may read them."""
    topics, comments = {}, {}
    for thread in Thread.objects.all():
        replies = thread.posts.count()
        topics[str(thread.id)] = told(thread) | {"forum_id": thread.subcategory.slug, "title": thread.title, "replies": replies}
    for post in Post.objects.all():
        comments[f"post-{post.id}"] = told(post) | {"topic_id": str(post.thread_id)}
    return {"topics": topics, "comments": comments}


def told(one: Thread | Post) -> dict:
    """Text of the markup that the forum made, by another way than Trawl's: tags out, entities decoded."""
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", render(one.content))).split())
    return {"text": text, "author": one.user.username, "at": one.created_at.strftime("%Y-%m-%d %H:%M")}


def main() -> None:
    verb = sys.argv[1]
    if verb == "truth":
        answer = truth()
    elif verb == "forums":
        answer = [board.slug for board in Subcategory.objects.all()]
    else:
        answer = {"found": found, "populate": populate, "change": change}[verb]()
    print(json.dumps(answer))


main()
