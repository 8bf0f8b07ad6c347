"""django-machina: Django, HTML pages, SQLite. From PyPI. No profile was written for it: its site file is what a user makes of the
one that `trawl sites new` writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tests.real_forums.environment import ask, bare_environment, free_port, pip_environment, run
from tests.real_forums.software import Software

WORLDS = Path(__file__).parent / "worlds"
SITE = '''
profile = "generic"
base_url = "{base_url}"
forums = [{forums}]

[politeness]
delay_s = 0
concurrency = 8

[pages.list]
url = "/forum/x-{{forum}}/?page={{page}}"
rows = ".topiclist .card-body > .row:has(.topic-name-link)"
next = "ul.pagination li:last-child > a"

[pages.list.fields]
id = {{ select = "a.topic-name-link::attr(href)", regex = '-(\\d+)/$' }}
url = "a.topic-name-link"
title = "a.topic-name-link"
author = {{ select = ".topic-created", regex = '^\\s*By: (.*) on ' }}
reply_count = ".topic-count"
created_at = {{ select = ".topic-created", regex = ' on (.*)$' }}
last_activity = ".topic-last-post small"
token = """(concat(.//*[contains(@class, 'topic-count')], '@', \\
substring-after(.//*[contains(@class, 'topic-last-post')]//@href[contains(., '#')], '#')))"""
sticky = ".topic-icon .fa-lightbulb, .topic-icon .fa-info"

[pages.comments]
url = "/forum/x-1/topic/x-{{thread}}/?page={{page}}"
rows = "div.post"
next = "ul.pagination li:last-child > a"

[pages.comments.post]
title = "h1"
forum_id = {{ select = "(//*[contains(@class, 'breadcrumb')]//@href[not(contains(., '/topic/'))])[last()]", regex = '-(\\d+)/$' }}

[pages.comments.fields]
id = {{ select = "./@id", regex = '^\\d+$' }}
body = ".post-content"
author = {{ select = ".text-muted", regex = 'By: (.*) on ' }}
created_at = {{ select = ".text-muted", regex = ' on (.*)$' }}
edited_at = {{ select = ".edit-info small", regex = ' on (.*), edited' }}
'''


class Machina(Software):
    """The forum of `worlds/machina_settings.py`."""

    name: ClassVar[str] = "machina"
    profile: ClassVar[str] = "generic"
    requirements: ClassVar[tuple[str, ...]] = ("django-machina==1.3.1", "Django==5.2.19")

    def install(self) -> None:
        self._python = pip_environment(self.name, self.requirements)

    def start(self) -> None:
        self._environment = bare_environment(
            FORUM_FOLDER=str(self.folder), PYTHONPATH=str(WORLDS), DJANGO_SETTINGS_MODULE="machina_settings"
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
        return ask(self._python, WORLDS / "machina_world.py", verb, environment=self._environment, cwd=self.folder)
