"""URLs of the small Misago."""

from django.urls import include, path
from django.views.i18n import JavaScriptCatalog

urlpatterns = [
    path("", include("misago.urls", namespace="misago")),
    path("django-i18n.js", JavaScriptCatalog.as_view(), name="django-i18n"),  # each of its pages loads it
]
