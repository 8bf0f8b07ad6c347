"""Comments on questions and answers: question-and-answer sites keep comments apart from the posts of a thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from .records import SeenPost


def with_their_posts(posts: Sequence[SeenPost], comments: Collection[int]) -> tuple[SeenPost, ...]:
    """Return the posts with their comments. `comments`: their indexes in `posts`; a comment without a known post goes to the
    first.
    """
    if not comments:
        return tuple(posts)
    kept = [n for n in range(len(posts)) if n not in comments]
    if not kept:
        return tuple(posts)
    places = {post_id: n for n in kept if (post_id := posts[n].id) is not None}
    above: dict[int, list[SeenPost]] = {n: [] for n in kept}
    for n in sorted(comments):
        above[places.get(posts[n].parent or "", kept[0])].append(posts[n])
    return tuple(msgspec.structs.replace(posts[n], comments=tuple(above[n])) for n in kept)
