"""The board, not at the root of the site."""

from django.urls import include, path

urlpatterns = [path("board/", include("punkweb_bb.urls"))]
