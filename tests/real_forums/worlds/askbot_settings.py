"""Django settings of a small Askbot: what its own `askbot-setup` writes, with a cache that all processes share."""

import os

from askbot_site.settings import *  # noqa: F403 - the installation's settings, of which a few are others here

FOLDER = os.environ["FORUM_FOLDER"]
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "askbot_site.urls"
USE_TZ = True
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": f"{FOLDER}/cache", "TIMEOUT": 6000}
}
CELERY_TASK_ALWAYS_EAGER = False  # what would write to people waits, and nobody comes for it
COMPRESS_ENABLED = False
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DATABASES["default"]["OPTIONS"] = {"timeout": 30, "init_command": "PRAGMA synchronous=OFF"}  # noqa: F405
