"""A small Misago on PostgreSQL: Django settings, read in Misago's own environment."""

import os
import tempfile

from misago.settings import INSTALLED_APPS as MISAGO_APPS
from misago.settings import MISAGO_NOTIFICATIONS_RETRY_DELAY, TEMPLATE_CONTEXT_PROCESSORS  # noqa: F401 - Django reads the names here

_FOLDER = tempfile.gettempdir()

SECRET_KEY = "only on loopback, for a test"
DEBUG = bool(os.environ.get("FORUM_DEBUG"))
ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        **{key: os.environ[f"FORUM_DB_{key}"] for key in ("NAME", "USER", "PASSWORD", "HOST")},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
USE_I18N = USE_TZ = True
LANGUAGE_CODE, TIME_ZONE = "en-us", "UTC"
STATIC_URL, STATIC_ROOT = "/static/", os.path.join(_FOLDER, "static")
MEDIA_URL, MEDIA_ROOT = "/media/", os.path.join(_FOLDER, "media")
AUTH_USER_MODEL = "misago_users.User"
AUTHENTICATION_BACKENDS = ["misago.users.authbackends.MisagoBackend"]
CSRF_FAILURE_VIEW = "misago.core.errorpages.csrf_failure"
INSTALLED_APPS = [app for app in MISAGO_APPS if app != "debug_toolbar"]
INSTALLED_PLUGINS: list[str] = []
ROOT_URLCONF = "misago_urls"
LOGIN_REDIRECT_URL, LOGIN_URL, LOGOUT_URL = "misago:index", "misago:login", "misago:logout"
MIDDLEWARE = [
    "misago.users.middleware.RealIPMiddleware",
    "misago.core.middleware.FrontendContextMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "misago.cache.middleware.cache_versions_middleware",
    "misago.conf.middleware.dynamic_settings_middleware",
    "misago.socialauth.middleware.socialauth_providers_middleware",
    "misago.users.middleware.UserMiddleware",
    "misago.acl.middleware.user_acl_middleware",
    "misago.core.middleware.ExceptionHandlerMiddleware",
    "misago.users.middleware.OnlineTrackerMiddleware",
    "misago.admin.middleware.AdminAuthMiddleware",
    "misago.threads.middleware.UnreadThreadsCountMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": TEMPLATE_CONTEXT_PROCESSORS},
    }
]
REST_FRAMEWORK = {
    "DEFAULT_PERMISSION_CLASSES": ["misago.core.rest_permissions.IsAuthenticatedOrReadOnly"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "misago.core.exceptionhandler.handle_api_exception",
    "UNAUTHENTICATED_USER": "misago.users.models.AnonymousUser",
    "URL_FORMAT_OVERRIDE": None,
}
CELERY_TASK_ALWAYS_EAGER = True
MISAGO_SEARCH_CONFIG = "simple"
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
