"""URLs of the small Misago."""

from django.urls import include, path

urlpatterns = [path("", include("misago.urls", namespace="misago"))]
