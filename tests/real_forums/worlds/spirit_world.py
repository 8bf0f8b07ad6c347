"""What happens in the small Spirit, through its own models.

    python spirit_world.py found|populate|change|truth|forums

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
from spirit.category.models import Category
from spirit.comment.models import Comment
from spirit.core.utils.markdown import Markdown
from spirit.topic.models import Topic

TITLES = ["How do I {0} a {1}?", '<{0}> & {1}: what\'s "right"?', "{1} {0} — ünïcode ✓ 中文", "2 {0} for 1 {1}"]
WORDS = ["crawl", "redis", "forum", "thread", "lease", "bucket", "river", "stone", "kettle", "lantern", "marble", "violin"]
START = timezone.now() - timedelta(days=400)


class World:
    """The forum with the people who write in it; `clock` goes on with each post."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.number = Comment.objects.count()
        self.users = list(User.objects.order_by("id"))
        last = Comment.objects.order_by("-date").first()
        self.clock = last.date if last else START

    def thread(self, category: Category, replies: int) -> Topic:
        title = self.dice.choice(TITLES).format(*self.dice.choices(WORDS, k=2))
        topic = Topic.objects.create(user=self.writer(), category=category, title=title, date=self.clock)
        for number in range(replies + 1):
            self.post(topic, topic.user if number == 0 else self.writer())
        return topic

    def post(self, topic: Topic, writer: User) -> Comment:
        text = self.text()
        self.clock += timedelta(seconds=self.dice.randint(60, 6000))
        comment = Comment.objects.create(
            user=writer, topic=topic, comment=text, comment_html=Markdown().render(text), date=self.clock
        )
        topic.increase_comment_count()
        Topic.objects.filter(id=topic.id).update(last_active=self.clock)
        return comment

    def reply(self, topic: Topic) -> Comment:
        return self.post(topic, self.writer())

    def act(self, topic: Topic, action: int) -> None:
        """What a moderator did stands among the comments."""
        self.clock += timedelta(seconds=1)
        Comment.create_moderation_action(user=self.users[0], topic=topic, action=action)
        Comment.objects.filter(topic=topic, action=action).update(date=self.clock)

    def writer(self) -> User:
        return self.dice.choice(self.users)

    def text(self) -> str:
        """A body in Markdown: paragraphs, emphasis, a quote, a list, signs that HTML escapes."""
        self.number += 1
        words = " ".join(self.dice.choices(WORDS, k=self.dice.randint(5, 30)))
        parts = [
            f"Number {self.number}: {words}.",
            "**bold** and *more* of 3 < 4 && 5 > 4 in ünïcode 中文",
            "> a quote",
            "- one\n- two",
        ]
        return "\n\n".join(parts[: self.dice.randint(1, len(parts))])


def categories() -> list[Category]:
    return list(Category.objects.visible().filter(title__in=["One & only", "Two", "Within one", "Alone"]).order_by("id"))


def found() -> None:
    """The empty forum: people, three categories, one within another, one for members only; few rows a page."""
    from djconfig.models import Config

    for number in range(8):
        user = User.objects.create_user(f"Member{number}", f"m{number}@example.com", "password")
        user.st.nickname = f"Member {number}"
        user.st.save()
    one = Category.objects.create(title="One & only", description="about <it>")
    Category.objects.create(title="Two")
    Category.objects.create(title="Within one", parent=one)
    Category.objects.create(title="Alone")
    Category.objects.create(title="Hidden", is_private=True)
    for key, value in {"topics_per_page": 11, "comments_per_page": 8}.items():
        Config.objects.update_or_create(key=key, defaults={"value": str(value)})


def populate() -> None:
    world = World(1)
    topics = []
    for number in range(240):
        replies = world.dice.choice([0, 0, 1, 2, 3, 5, 8, 40 if number % 40 == 0 else 1])
        topics.append(world.thread(world.dice.choice(categories()), replies))
    for topic in topics[3:8]:
        settle(topic, is_pinned=True, is_globally_pinned=bool(topic.id % 2))
        world.act(topic, Comment.PINNED)
    for topic in topics[6:12]:
        settle(topic, is_closed=True)
        world.act(topic, Comment.CLOSED)
    settle(topics[30], is_removed=True)
    move(world, topics[31])
    for topic in topics[40:60:2]:
        for comment in topic.comment_set.order_by("date")[1:3]:
            world.dice.choice([remove, edit])(comment)


def settle(topic: Topic, **values: object) -> None:
    Topic.objects.filter(id=topic.id).update(**values)


def move(world: World, topic: Topic) -> None:
    settle(topic, category=next(other for other in reversed(categories()) if other.id != topic.category_id))
    world.act(topic, Comment.MOVED)


def remove(comment: Comment) -> None:
    Comment.objects.filter(id=comment.id).update(is_removed=True)


def edit(comment: Comment) -> None:
    comment.comment += "\n\nEdited."
    comment.comment_html = Markdown().render(comment.comment)
    comment.is_modified = True
    comment.save()
    comment.increase_modified_count()


def change() -> None:
    """A little of everything, on topics that were there before."""
    world = World(2)
    topics = list(Topic.objects.visible().order_by("id"))
    long = [topic for topic in topics if topic.comment_count > 30]
    for _ in range(12):
        world.thread(world.dice.choice(categories()), world.dice.randint(0, 4))
    for topic in [*topics[5:25], *long[:3]]:
        for _ in range(world.dice.choice([1, 1, 2, 20])):
            world.reply(topic)
    for topic in [*topics[60:75], *long[3:]]:
        comments = list(topic.comment_set.filter(action=0, is_removed=False).order_by("date"))
        edit(comments[0])
        for comment in comments[1::3]:
            world.dice.choice([remove, edit])(comment)
    for topic in topics[80:84]:
        settle(topic, is_removed=True)
    move(world, topics[90])
    settle(topics[95], title="Another title <b>that</b> was changed")


def truth() -> dict:
    """Topics and comments that a guest may read."""
    topics, comments = {}, {}
    for topic in Topic.objects.visible().order_by("id"):
        first, *others = topic.comment_set.filter(action=Comment.COMMENT, is_removed=False).order_by("date")
        topics[str(topic.id)] = {
            "forum_id": "all",
            "title": topic.title,
            "text": plain(first),
            "author": first.user.st.nickname,
            "at": at(first),
            "replies": None,
        }
        for comment in others:
            told = {"text": plain(comment), "author": comment.user.st.nickname, "at": at(comment)}
            comments[str(comment.id)] = {"topic_id": str(topic.id), **told}
    return {"topics": topics, "comments": comments}


def at(comment: Comment) -> str:
    return comment.date.strftime("%Y-%m-%d %H:%M")


def plain(comment: Comment) -> str:
    """Text of the markup that the forum made, by another way than Trawl's: tags out, entities decoded."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", comment.comment_html)).split())


def main() -> None:
    verb = sys.argv[1]
    if verb == "truth":
        told = truth()
    elif verb == "forums":
        told = ["all"]
    else:
        told = {"found": found, "populate": populate, "change": change}[verb]()
    print(json.dumps(told))


main()
