"""In HyperKitty's environment: makes, fills and serves an archive, and tells what is in it. Its last line is JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command

FOLDER = Path(os.environ["FORUM_FOLDER"])
APPS = [
    "hyperkitty",
    "django_mailman3",
    "django_gravatar",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.sites",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "compressor",
    "haystack",
    "django_extensions",
    "django_q",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_mailman3.middleware.TimezoneMiddleware",
]
CONTEXT = [
    "django.template.context_processors.i18n",
    "django.template.context_processors.static",
    "django.template.context_processors.csrf",
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
    "django_mailman3.context_processors.common",
    "hyperkitty.context_processors.common",
]


def configure() -> None:
    """Settings as those of an ordinary installation, with everything in the folder."""
    settings.configure(
        SECRET_KEY="nobody logs in", ALLOWED_HOSTS=["*"], SITE_ID=1, ROOT_URLCONF="hyperkitty_world",
        USE_TZ=True, TIME_ZONE="UTC",
        INSTALLED_APPS=APPS, MIDDLEWARE=MIDDLEWARE, STATIC_URL="/static/", LOGIN_URL="account_login", FILTER_VHOST=False,
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": CONTEXT},
            }
        ],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(FOLDER / "archive.db")}},
        CACHES={"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}},
        STATIC_ROOT=str(FOLDER / "static"), COMPRESS_ENABLED=False, COMPRESS_PRECOMPILERS=(), HYPERKITTY_ENABLE_GRAVATAR=False,
        HAYSTACK_CONNECTIONS={"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
        MAILMAN_REST_API_URL="http://127.0.0.1:9", MAILMAN_REST_API_USER="nobody", MAILMAN_REST_API_PASS="none",
        MAILMAN_ARCHIVER_KEY="none", MAILMAN_ARCHIVER_FROM=("127.0.0.1",), DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        Q_CLUSTER={"retry": 360, "timeout": 300, "orm": "default", "sync": True},
    )  # fmt: skip
    django.setup()


def truth() -> dict[str, dict[str, dict[str, object]]]:
    """What a guest may see, by the hashes that the pages show."""
    from hyperkitty.models import Email

    topics, comments = {}, {}
    for email in Email.objects.select_related("thread__starting_email", "sender"):
        text, at = email.content.replace("> ", ""), email.date.strftime("%Y-%m-%d %H:%M")
        shown = {"text": text, "author": email.sender_name or email.sender.name, "at": at}
        first = email.thread.starting_email
        if email.pk == first.pk:
            count = email.thread.emails.count() - 1
            topics[email.message_id_hash] = {
                **shown,
                "forum_id": email.mailinglist.name,
                "title": email.subject,
                "replies": count,
            }
        else:
            comments[email.message_id_hash] = {**shown, "topic_id": email.thread.thread_id, "parent": None}
    return {"topics": topics, "comments": comments}


def main(verb: str, *words: str) -> None:
    """Do what is asked."""
    configure()
    told: object = None
    if verb == "found":
        call_command("migrate", verbosity=0)
    elif verb == "serve":
        call_command("runserver", f"127.0.0.1:{words[0]}", use_reloader=False, insecure_serving=True)
    elif verb == "import":
        call_command("hyperkitty_import", words[1], list_address=words[0], no_sync_mailman=True, verbosity=0)
    elif verb == "remove":
        from hyperkitty.models import Email

        for name in json.loads(words[0]):
            Email.objects.get(message_id=name).delete()
    else:
        told = truth()
    print("\n" + json.dumps(told))


if __name__ != "__main__":
    from django.urls import include, re_path

    urlpatterns = [
        re_path(r"^hyperkitty/", include("hyperkitty.urls")),
        re_path(r"^mailman3/", include("django_mailman3.urls")),
        re_path(r"^accounts/", include("allauth.urls")),
    ]
else:
    sys.path.insert(0, str(Path(__file__).parent))
    main(*sys.argv[1:])
