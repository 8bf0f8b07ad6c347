"""Errors that people see have words in place of the names of Python's classes."""

from __future__ import annotations

import errno
import re
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import closing

import pytest
import redis

from forums.storage import Database
from redis_components.errors import ConfigError
from redis_components.server.printable import in_words, without_class_names

CLASS = re.compile(r"\b[A-Z]\w+(Error|Exception)\b")


def refused() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        socket.create_connection(taken.getsockname())


def tls_to_plain() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def answer() -> None:
            with closing(server.accept()[0]) as one:
                one.recv(100)
                one.sendall(b"HTTP/1.1 400 no\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with closing(socket.create_connection(server.getsockname())) as raw:
            ssl.create_default_context().wrap_socket(raw, server_hostname="localhost")


def full_disk() -> None:
    with open("/dev/full", "w", buffering=1) as file:  # noqa: PTH123
        file.write("x\n")


def redis_away() -> None:
    redis.Redis(port=1).ping()


def wrapped() -> None:
    try:
        refused()
    except OSError as error:
        raise RuntimeError("ClientConnectorError: Cannot connect") from error


def raised(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        (refused, "connection refused"),
        (tls_to_plain, "TLS: the connection is not made (wrong version number)"),
        (full_disk, "the disk is full"),
        (redis_away, "Redis does not answer (connection refused)"),
        (wrapped, "connection refused"),
        (raised(TimeoutError()), "no answer in time"),
        (raised(ConnectionResetError(errno.ECONNRESET, "x")), "connection reset by peer"),
        (raised(ConnectionResetError()), "the connection broke"),
        (raised(socket.gaierror(-2, "Name or service not known")), "the name is not resolved (name or service not known)"),
        (raised(FileNotFoundError(2, "x", "/data/a")), "no such file or directory: /data/a"),
        (raised(OSError(errno.EHOSTUNREACH, "x")), "no route to host"),
        (raised(ConfigError("name a site")), "name a site"),
        (raised(KeyError("title")), "key error: 'title'"),
        (raised(ModuleNotFoundError("No module named 'x'")), "module not found: No module named 'x'"),
        (raised(redis.ResponseError("WRONGTYPE x")), "Redis: WRONGTYPE x"),
        (raised(ZeroDivisionError()), "zero division"),
    ],
)
def test_an_error_is_in_words(fail: Callable[[], None], words: str) -> None:
    with pytest.raises(Exception) as found:
        fail()
    assert in_words(found.value) == words


def test_a_database_that_is_away_is_in_words(tmp_path: object) -> None:
    for url in ("postgresql+psycopg://u:p@127.0.0.1:1/x", f"sqlite:///{tmp_path}/no/such/\0.db"):
        with pytest.raises(Exception) as found, Database.from_url(url):
            pass
        assert not CLASS.search(in_words(found.value)), in_words(found.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("psycopg.errors.UndefinedTableError: x", "undefined table: x"),
        ("crashed: scrapy.exceptions.DownloadConnectionRefusedError: x", "crashed: download connection refused: x"),
        ("<class 'OSError'> and SSLCertVerificationError(1)", "<class 'os error'> and ssl cert verification(1)"),
        ("a TrawlError", "a trawl error"),
        (
            "Error 404, an Error page, ErrorDocument, http://x/ValueErrors",
            "Error 404, an Error page, ErrorDocument, http://x/ValueErrors",
        ),
    ],
)
def test_names_within_a_text_are_in_words(text: str, shown: str) -> None:
    assert without_class_names(text) == shown
