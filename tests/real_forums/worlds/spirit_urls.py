"""The forum at the root of the site."""

from django.urls import include, path

urlpatterns = [path("", include("spirit.urls"))]
