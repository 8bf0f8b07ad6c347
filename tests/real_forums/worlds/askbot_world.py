"""What happens in the small Askbot, through its own models.

    python askbot_world.py found|populate|change|truth|forums

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

from askbot.conf import settings as board
from askbot.models import Post, Thread, User
from django.db import transaction
from django.utils import timezone

TITLES = ["How do I {0} a {1}?", '<{0}> & {1}: what\'s "right"?', "{1} {0} — ünïcode ✓ 中文", "2 {0} for 1 {1}, or none"]
WORDS = ["crawl", "redis", "forum", "thread", "lease", "bucket", "river", "stone", "kettle", "lantern", "marble", "violin"]
START = timezone.now() - timedelta(days=400)


class World:
    """The board with the people who write in it; `clock` goes on with each post."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.number = Post.objects.count()
        self.users = list(User.objects.order_by("id"))
        last = Post.objects.order_by("-added_at").first()
        self.clock = last.added_at.replace(microsecond=0) if last else START

    def ask(self, answers: int, comments: int) -> Thread:
        title = f"{self.dice.choice(TITLES).format(*self.dice.choices(WORDS, k=2))} #{self.number}"
        tags = " ".join(self.dice.sample(WORDS[:5], 2))
        question = self.writer().post_question(title=title, body_text=self.text(), tags=tags, timestamp=self.later())
        for _ in range(answers):
            self.answer(question.thread)
        for _ in range(comments):
            self.comment(self.dice.choice([question, *answers_of(question.thread)]))
        return question.thread

    def answer(self, thread: Thread) -> Post:
        """An answer of somebody who has not answered yet: nobody may twice."""
        thread = Thread.objects.get(id=thread.id)
        wrote = set(Post.objects.filter(thread=thread, post_type="answer").values_list("author_id", flat=True))
        writer = self.dice.choice([user for user in self.users if user.id not in wrote])
        return writer.post_answer(question=thread._question_post(), body_text=self.text(), timestamp=self.later())

    def comment(self, post: Post) -> Post:
        return self.writer().post_comment(parent_post=fresh(post), body_text=self.text(), timestamp=self.later())

    def edit(self, post: Post, **more: str) -> None:
        post, text, at = fresh(post), f"{post.text}\n\nEdited, {self.dice.choice(WORDS)}.", self.later()
        if post.post_type == "comment":
            self.users[0].edit_comment(comment_post=post, body_text=text, timestamp=at)
        elif post.post_type == "answer":
            self.users[0].edit_answer(answer=post, body_text=text, timestamp=at)
        else:
            self.users[0].edit_question(question=post, body_text=text, timestamp=at, **more)

    def delete(self, post: Post) -> None:
        self.users[0].delete_post(fresh(post), timestamp=self.later())

    def writer(self) -> User:
        return self.dice.choice(self.users)

    def later(self) -> timezone.datetime:
        self.clock += timedelta(seconds=self.dice.randint(60, 6000))
        return self.clock

    def text(self) -> str:
        """A body in Markdown: paragraphs, emphasis, a quote, a list, signs that HTML escapes; some longer than a summary."""
        self.number += 1
        words = " ".join(self.dice.choices(WORDS, k=self.dice.choice([5, 20, 200])))
        parts = [f"Number {self.number}: {words}.", "**bold** and *more* of 3 < 4 && 5 > 4", "> a quote", "- one\n- two"]
        return "\n\n".join(parts[: self.dice.randint(1, len(parts))])


def fresh(post: Post) -> Post:
    return Post.objects.get(id=post.id)


def answers_of(thread: Thread) -> list[Post]:
    return list(Post.objects.filter(thread=thread, post_type="answer", deleted=False).order_by("added_at"))


def comments_of(thread: Thread) -> list[Post]:
    return list(Post.objects.filter(thread=thread, post_type="comment", deleted=False).order_by("added_at"))


def threads() -> list[Thread]:
    return list(Thread.objects.filter(deleted=False).order_by("id"))


def found() -> None:
    """The empty board and its people, all of whom may do everything. Nobody is written to: that takes most of the time."""
    board.update("ENABLE_EMAIL_ALERTS", False)
    for number in range(30):
        user = User.objects.create_user(f"Member {number}", f"m{number}@example.com", "password")
        user.reputation = 10_000
        user.save()
    User.objects.filter(username="Member 0").update(is_superuser=True, is_staff=True)
    User.objects.get(username="Member 0").set_status("d")


def populate() -> None:
    """Questions with none to many answers and comments: more answers than a page has, more comments than are shown."""
    world = World(1)
    for number in range(215):
        answers = 24 if number % 50 == 0 else world.dice.choice([0, 0, 1, 1, 2, 4])
        world.ask(answers, 14 if number % 30 == 0 else world.dice.choice([0, 0, 0, 1, 2, 4]))
    there = threads()
    for thread in there[20:40:2]:
        for post in [*answers_of(thread)[:1], *comments_of(thread)[:1]]:
            world.dice.choice([world.edit, world.delete])(post)
    world.delete(there[30]._question_post())
    world.edit(there[31]._question_post())


def change() -> None:
    """New questions, answers and comments; edits and deletions of each kind, in threads that were there before."""
    world = World(2)
    there = threads()
    for _ in range(8):
        world.ask(world.dice.randint(0, 3), world.dice.randint(0, 3))
    for thread in there[5:25]:
        world.answer(thread)
    for thread in there[20:45]:
        world.comment(thread._question_post())
    for thread in there[60:90]:
        posts = [thread._question_post(), *answers_of(thread), *comments_of(thread)]
        world.edit(posts[0])
        for post in posts[1::3]:
            world.dice.choice([world.edit, world.delete])(post)
    for thread in there[100:140]:
        for post in comments_of(thread)[:1]:
            world.dice.choice([world.edit, world.delete])(post)
    for thread in there[150:154]:
        world.delete(thread._question_post())
    world.edit(there[160]._question_post(), title="Another title <b>that</b> was changed")


def truth() -> dict:
    """Questions, with their answers and comments."""
    topics, comments = {}, {}
    for thread in threads():
        question = thread._question_post()
        topics[str(question.id)] = {**shown(question), "forum_id": "all", "title": thread.title, "replies": None}
        for post in [*answers_of(thread), *comments_of(thread)]:
            if post.post_type == "comment" and post.parent.deleted:
                continue
            parent = None if post.post_type == "answer" or post.parent_id == question.id else str(post.parent_id)
            comments[str(post.id)] = {**shown(post), "topic_id": str(question.id), "parent": parent}
    return {"topics": topics, "comments": comments}


def shown(post: Post) -> dict[str, str]:
    return {"text": plain(post.html), "author": post.author.username, "at": post.added_at.strftime("%Y-%m-%d %H:%M")}


def plain(markup: str) -> str:
    """Text of the markup that the board made, by another way than Trawl's: tags out, entities decoded."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def main() -> None:
    verb = sys.argv[1]
    if verb == "truth":
        told = truth()
    elif verb == "forums":
        told = ["all"]
    else:
        with transaction.atomic():
            told = {"found": found, "populate": populate, "change": change}[verb]()
    print("\n" + json.dumps(told))


main()
