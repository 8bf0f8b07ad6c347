"""What happens in the small Misago, through its own models and moderation: `python misago_world.py populate|change|truth|forums`.

Runs in Misago's own environment. The last line printed is JSON.
"""

import html
import json
import random
import re
import sys
import types
from datetime import timedelta

import django

django.setup()

from django.contrib.auth import get_user_model
from django.utils import timezone
from misago.acl.useracl import get_user_acl
from misago.cache.versions import get_cache_versions, invalidate_all_caches
from misago.categories.models import Category, RoleCategoryACL
from misago.conf.dynamicsettings import DynamicSettings
from misago.core.utils import slugify
from misago.markup import common_flavour
from misago.threads import moderation
from misago.threads.checksums import update_post_checksum
from misago.threads.models import Post, Thread
from misago.users.test import create_test_superuser, create_test_user

TITLES = ["How do I {0} a {1}?", '<{0}> & {1}: what\'s "right"?', "{1} {0} — ünïcode ✓ 中文", "Re: {0} of {1} &amp; co"]
WORDS = ["crawl", "redis", "forum", "thread", "lease", "bucket", "river", "stone", "kettle", "lantern", "marble", "violin"]
START = timezone.now() - timedelta(days=400)


def text(dice: random.Random, number: int) -> str:
    """A body in Misago's own markup: paragraphs, emphasis, a quote, code, a link, signs that HTML escapes."""
    words = " ".join(dice.choices(WORDS, k=dice.randint(5, 30)))
    parts = [f"Number {number}: {words}.", "**bold** and _more_ of 3 < 4 && 5 > 4 in ünïcode 中文", "> a quote\n", "`a <b> & c`"]
    return "\n\n".join(parts[: dice.randint(1, len(parts))])


class World:
    """The forum with the people who write in it; `clock` goes on with each post, so ids and times rise together."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.settings = DynamicSettings(get_cache_versions())
        user = get_user_model()
        self.users = list(user.objects.order_by("id")) or self._people()
        last = Post.objects.order_by("-posted_on").first()
        self.clock = last.posted_on if last else START

    @staticmethod
    def _people() -> list:
        members = [create_test_user(f"Member{number}", f"m{number}@example.com", "password") for number in range(8)]
        return [create_test_superuser("Boss", "boss@example.com", "password"), *members]

    @property
    def request(self) -> types.SimpleNamespace:
        """As far as moderation and the parser look at one."""
        boss = self.users[0]
        acl = get_user_acl(boss, get_cache_versions())
        return types.SimpleNamespace(
            user=boss,
            user_acl=acl,
            settings=self.settings,
            user_ip="127.0.0.1",
            get_host=lambda: "127.0.0.1",
            is_secure=lambda: False,
        )

    def post(self, thread: Thread, *, unapproved: bool = False) -> Post:
        self.clock += timedelta(seconds=self.dice.randint(60, 6000))
        writer = self.dice.choice([*self.users, None])  # None: the account is gone, the name stays
        parsed = common_flavour(self.request, self.users[0], text(self.dice, Post.objects.count()), allow_mentions=False)
        post = Post.objects.create(
            category=thread.category,
            thread=thread,
            poster=writer,
            poster_name=writer.username if writer else "Gone Member",
            original=parsed["original_text"],
            parsed=parsed["parsed_text"],
            posted_on=self.clock,
            updated_on=self.clock,
            is_unapproved=unapproved,
        )
        update_post_checksum(post)
        post.save()
        return post

    def thread(self, category: Category, replies: int, *, unapproved: bool = False) -> Thread:
        title = self.dice.choice(TITLES).format(*self.dice.choices(WORDS, k=2))
        name = {"starter_name": "-", "starter_slug": "-", "last_poster_name": "-", "last_poster_slug": "-"}
        thread = Thread(
            category=category, title=title, slug=slugify(title), started_on=self.clock, last_post_on=self.clock, **name
        )
        thread.save()
        thread.first_post = self.post(thread, unapproved=unapproved)
        thread.save()
        for _ in range(replies):
            self.post(thread)
        self.settle(thread)
        return thread

    def edit(self, post: Post) -> None:
        parsed = common_flavour(self.request, self.users[0], f"{post.original}\n\nEdited.", allow_mentions=False)
        post.original, post.parsed = parsed["original_text"], parsed["parsed_text"]
        post.edits += 1
        post.updated_on = timezone.now()
        update_post_checksum(post)
        post.save()

    @staticmethod
    def settle(*threads: Thread) -> None:
        for thread in threads:
            thread.synchronize()
            thread.save()
            thread.category.synchronize()
            thread.category.save()


def categories() -> list[Category]:
    return list(Category.objects.filter(tree_id=0, level__gt=0).order_by("lft"))


def more_categories() -> None:
    """A second category, and a child of it: a list of the parent shows the child's threads as well."""
    first = categories()[0]
    for name, parent in (("Second category", first.parent), ("Child category", None)):
        parent = parent or Category.objects.get(name="Second category")
        made = Category(name=name, slug=slugify(name))
        made.insert_at(Category.objects.get(id=parent.id), position="last-child", save=True)
        for acl in RoleCategoryACL.objects.filter(category=first):
            RoleCategoryACL.objects.create(role=acl.role, category=made, category_role=acl.category_role)
    invalidate_all_caches()


def populate() -> None:
    world = World(1)
    Thread.objects.all().delete()  # Misago's own welcome
    more_categories()
    threads = []
    for number in range(240):
        category = world.dice.choice(categories())
        threads.append(world.thread(category, replies=world.dice.choice([0, 0, 1, 2, 3, 5, 8, 60 if number % 40 == 0 else 1])))
    moderation.pin_thread_globally(world.request, threads[3])
    for thread in threads[10:14]:
        moderation.pin_thread_locally(world.request, thread)
    for thread in threads[20:23]:
        moderation.hide_thread(world.request, thread)
    moderation.delete_thread(world.request, threads[30])
    moderation.move_thread(world.request, threads[31], categories()[-1])
    moderation.change_thread_title(world.request, threads[32], "A title that was changed")
    world.thread(categories()[0], 0, unapproved=True)
    for thread in threads[40:60]:
        for post in thread.post_set.filter(is_event=False).order_by("id")[1:3]:
            world.dice.choice([hide, world.edit, delete])(post)
        world.post(thread, unapproved=True)
        World.settle(thread)


def hide(post: Post) -> None:
    moderation.hide_post(get_user_model().objects.order_by("id").first(), post)


def delete(post: Post) -> None:
    moderation.delete_post(None, post)


def change() -> None:
    """A little of everything, on threads that were there before."""
    world = World(2)
    threads = list(Thread.objects.filter(is_hidden=False, is_unapproved=False).order_by("id"))
    long = [thread for thread in threads if thread.replies > 50]
    for _ in range(12):
        world.thread(world.dice.choice(categories()), world.dice.randint(0, 4))
    for thread in [*threads[5:25], *long[:3]]:
        for _ in range(world.dice.choice([1, 1, 2, 30])):
            world.post(thread)
        World.settle(thread)
    for thread in [*threads[60:75], *long[3:]]:
        posts = list(thread.post_set.filter(is_event=False).order_by("id"))
        world.edit(posts[0])
        for post in posts[1::3]:
            world.dice.choice([hide, delete, world.edit])(post)
        World.settle(thread)
    for thread in threads[80:84]:
        moderation.delete_thread(world.request, thread)
    for thread in threads[90:93]:
        moderation.hide_thread(world.request, thread)
    moderation.change_thread_title(world.request, threads[95], "Another title <b>that</b> was changed")


def truth() -> dict:
    """Threads that are neither hidden nor unapproved, and their posts that are neither hidden, unapproved nor events."""
    shown = Thread.objects.filter(is_hidden=False, is_unapproved=False, category__tree_id=0).select_related("category")
    topics, comments = {}, {}
    for thread in shown:
        posts = list(thread.post_set.filter(is_event=False, is_unapproved=False).order_by("id"))
        first = posts.pop(0)
        topics[str(thread.id)] = {
            "forum_id": str(thread.category_id),
            "title": thread.title,
            "text": plain(first),
            "author": first.poster_name,
            "replies": thread.replies,
        }
        for post in posts:
            if not post.is_hidden:
                comments[str(post.id)] = {"topic_id": str(thread.id), "text": plain(post), "author": post.poster_name}
    return {"topics": topics, "comments": comments}


def plain(post: Post) -> str:
    """Text of the markup that Misago stored, by another way than Trawl's: tags out, entities decoded."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", post.parsed)).split())


def main() -> None:
    verb = sys.argv[1]
    if verb == "truth":
        told = truth()
    elif verb == "forums":
        told = [str(category.id) for category in categories()]
    else:
        told = {"populate": populate, "change": change}[verb]()
    print(json.dumps(told))


main()
