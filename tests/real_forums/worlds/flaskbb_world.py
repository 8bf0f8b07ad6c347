"""What happens in the small FlaskBB, through its own models: `python flaskbb_world.py found|populate|change|truth|forums`.

Runs in FlaskBB's own environment. The last line printed is JSON.
"""

import html
import json
import random
import re
import sys

from flaskbb_app import make  # first: it gives `collections` the names that FlaskBB asks for

# isort: split
from flask import current_app
from flaskbb.extensions import db
from flaskbb.forum.models import Category, Forum, Post, Topic
from flaskbb.management.models import Setting
from flaskbb.user.models import User
from flaskbb.utils.helpers import time_utcnow
from flaskbb.utils.populate import create_default_groups, create_default_settings, create_user

TITLES = ["How do I {0} a {1}?", '<{0}> & {1}: what\'s "right"?', "{1} {0} — ünïcode ✓ 中文", "2 {0} for 1 {1}"]
WORDS = ["crawl", "redis", "forum", "thread", "lease", "bucket", "river", "stone", "kettle", "lantern", "marble", "violin"]


def text(dice: random.Random, number: int) -> str:
    """A body in Markdown: paragraphs, emphasis, a quote, code, a list, signs that HTML escapes."""
    words = " ".join(dice.choices(WORDS, k=dice.randint(5, 30)))
    parts = [f"Number {number}: {words}.", "**bold** and *more* of 3 < 4 && 5 > 4 in ünïcode 中文", "> a quote\n", "`a <b> & c`"]
    return "\n\n".join([*parts[: dice.randint(1, len(parts))], "- one\n- two" if number % 7 == 0 else ""]).strip()


class World:
    """The forum with the people who write in it."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.number = Post.query.count()
        self.users = User.query.order_by(User.id).all()

    def thread(self, forum: Forum, replies: int) -> Topic:
        title = self.dice.choice(TITLES).format(*self.dice.choices(WORDS, k=2))
        topic = Topic(title=title)
        topic.save(user=self.dice.choice(self.users), forum=forum, post=Post(content=self.text()))
        for _ in range(replies):
            self.post(topic)
        return topic

    def post(self, topic: Topic) -> Post:
        post = Post(content=self.text())
        post.save(user=self.dice.choice(self.users), topic=topic)
        if self.number % 9 == 0:  # the account is gone, the name stays
            post.user_id, post.username = None, "Gone Member"
            db.session.commit()
        return post

    def text(self) -> str:
        self.number += 1
        return text(self.dice, self.number)

    def edit(self, post: Post) -> None:
        post.content += "\n\nEdited."
        post.date_modified, post.modified_by = time_utcnow(), self.users[0].username
        post.save()

    def hide(self, post: Post) -> None:
        if post.user is not None:
            post.hide(self.users[0])

    def delete(self, post: Post) -> None:
        if post.user is not None:
            post.delete()


def forums() -> list[Forum]:
    return [forum for forum in Forum.query.order_by(Forum.id) if not forum.external]


def found() -> None:
    """The empty forum: groups, settings, people, two categories, a forum that only leads elsewhere."""
    db.create_all()
    create_default_groups()
    create_default_settings()
    for key, value in {"posts_per_page": 7, "topics_per_page": 9}.items():
        Setting.query.filter_by(key=key).first().value = value
    for number in range(8):
        user = create_user(f"Member{number}", "password", f"m{number}@example.com", "admin" if number == 0 else "member")
        if number % 2:
            user.signature = f"**signature** of {number}"
    for place in ("First", "Second"):
        category = Category(title=f"{place} category").save()
        for name in ("one", "two"):
            Forum(title=f"{place} {name} & more", category_id=category.id, description="about <it>").save()
        Forum(title="Elsewhere", category_id=category.id, description="not ours", external="http://127.0.0.1:9/").save()
    db.session.commit()


def populate() -> None:
    world = World(1)
    topics = [
        world.thread(world.dice.choice(forums()), replies=world.dice.choice([0, 0, 1, 2, 3, 5, 8, 40 if number % 40 == 0 else 1]))
        for number in range(240)
    ]
    for topic in topics[3:8]:
        topic.important = True
    for topic in topics[6:12]:
        topic.locked = True
    db.session.commit()
    for topic in topics[20:23]:
        topic.hide(world.users[0])
    topics[30].delete()
    topics[31].move(forums()[-1] if topics[31].forum != forums()[-1] else forums()[0])
    for topic in topics[40:60]:
        for post in topic.posts.order_by(Post.id).all()[1:3]:
            world.dice.choice([world.hide, world.edit, world.delete])(post)


def change() -> None:
    """A little of everything, on topics that were there before."""
    world = World(2)
    topics = Topic.query.order_by(Topic.id).all()
    long = [topic for topic in topics if topic.post_count > 30]
    for _ in range(12):
        world.thread(world.dice.choice(forums()), world.dice.randint(0, 4))
    for topic in [*topics[5:25], *long[:3]]:
        for _ in range(world.dice.choice([1, 1, 2, 20])):
            world.post(topic)
    for topic in [*topics[60:75], *long[3:]]:
        posts = topic.posts.order_by(Post.id).all()
        world.edit(posts[0])
        for post in posts[1::3]:
            world.dice.choice([world.hide, world.delete, world.edit])(post)
    for topic in topics[80:84]:
        topic.delete()
    for topic in topics[90:93]:
        topic.hide(world.users[0])
    topics[95].title = "Another title <b>that</b> was changed"
    db.session.commit()


def truth() -> dict:
    """Topics and posts that are not hidden: FlaskBB leaves hidden ones out of what a guest sees."""
    markup = current_app.jinja_env.filters["markup"]
    topics, comments = {}, {}
    for topic in Topic.query.filter(Topic.hidden.isnot(True)).order_by(Topic.id):
        first, *others = Post.query.filter(Post.topic_id == topic.id, Post.hidden.isnot(True)).order_by(Post.id)
        topics[str(topic.id)] = {
            "forum_id": str(topic.forum_id),
            "title": topic.title,
            "text": plain(markup, first),
            "author": first.username,
            "replies": None,
        }
        for post in others:
            comments[str(post.id)] = {"topic_id": str(topic.id), "text": plain(markup, post), "author": post.username}
    return {"topics": topics, "comments": comments}


def plain(markup, post: Post) -> str:
    """Text of the markup that FlaskBB makes, by another way than Trawl's: tags out, entities decoded."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", str(markup(post.content)))).split())


def main() -> None:
    app = make()
    with app.test_request_context():
        verb = sys.argv[1]
        if verb == "truth":
            told = truth()
        elif verb == "forums":
            told = [str(forum.id) for forum in forums()]
        else:
            told = {"found": found, "populate": populate, "change": change}[verb]()
    print(json.dumps(told))


main()
