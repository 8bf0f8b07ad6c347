"""Spirit: Django, HTML pages, SQLite. From PyPI. No profile was written for it: its site file is what `trawl sites new` writes,
with the counts and dates filled in. Its addresses hold titles, and one with another title leads to the first page: so pages
are only reached by the links to them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tests.real_forums.environment import ask, bare_environment, free_port, pip_environment, run
from tests.real_forums.software import Software

WORLDS = Path(__file__).parent / "worlds"
SITE = """
profile = "generic"
base_url = "{base_url}"
forums = [{forums}]

[politeness]
delay_s = 0
concurrency = 8

[pages.list]
url = '/category/{{forum:path}}/?page={{page}}'
rows = 'div.layout__topics__topic'
next = 'a:has(> .fa-chevron-right)'

[pages.list.fields]
id = {{ select = 'a.topic__link::attr(href)', regex = '/topic/(\\d+)' }}
title = 'a.topic__link'
url = 'a.topic__link'
reply_count = {{ select = ".topic__comments", add = -1 }}
last_activity = ".topic__date::attr(title)"
sticky = ".fa-thumb-tack"

[pages.comments]
url = '{{url}}'
rows = 'div.comments_list__comment'
next = 'a:has(> .fa-chevron-right)'

[pages.comments.post]
forum_id = {{ select = "(//ul[contains(@class, 'breadcrumb')]//@href)[last()]", regex = '/category/(\\d+/[^/]+)' }}

[pages.comments.fields]
id = './@data-pk'
body = 'div.comment__text'
author = 'a[href*="/user/"]'
created_at = ".comment__info__date li::attr(title)"
"""


class Spirit(Software):
    """The forum of `worlds/spirit_settings.py`."""

    name: ClassVar[str] = "spirit"
    profile: ClassVar[str] = "generic"
    requirements: ClassVar[tuple[str, ...]] = ("django-spirit==0.14.3", "Django==5.2.19")

    def install(self) -> None:
        self._python = pip_environment(self.name, self.requirements)

    def start(self) -> None:
        self._environment = bare_environment(
            FORUM_FOLDER=str(self.folder), PYTHONPATH=str(WORLDS), DJANGO_SETTINGS_MODULE="spirit_settings"
        )
        django: list[str | Path] = [self._python, "-m", "django"]
        run([*django, "migrate", "--verbosity=0"], environment=self._environment, cwd=self.folder)
        self.world("found")
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self.launch([*django, "runserver", "--noreload", f"127.0.0.1:{port}"], environment=self._environment)
        self.wait_until_it_answers()

    def site_file(self) -> str:
        return SITE.format(base_url=self.base_url, forums=", ".join(f'"{forum}"' for forum in self.forums()))

    def world(self, verb: str) -> Any:
        return ask(self._python, WORLDS / "spirit_world.py", verb, environment=self._environment, cwd=self.folder)
