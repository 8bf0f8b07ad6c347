"""Sentinel and Cluster URLs, and what Celery makes of every form."""

from __future__ import annotations

import ssl

import pytest

from redis_components.connection import get_redis
from redis_components.errors import ConfigError
from redis_components.server.printable import masked
from redis_components.server.url import UrlKind, address_of, check, kind_of, server_params
from workers.node.worker_setup import Broker, broker_of


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("redis://h", UrlKind.SERVER),
        ("rediss://h", UrlKind.SERVER),
        ("unix:///s", UrlKind.SERVER),
        ("redis+sentinel://h/s", UrlKind.SENTINEL),
        ("rediss+sentinel://h/s", UrlKind.SENTINEL),
        ("redis+cluster://h", UrlKind.CLUSTER),
        ("rediss+cluster://h", UrlKind.CLUSTER),
        ("nothing of the kind", UrlKind.SERVER),
    ],
)
def test_the_scheme_says_what_answers(url: str, kind: UrlKind) -> None:
    assert kind_of(url) is kind


def test_a_sentinel_url_names_sentinels_service_database_and_both_logins() -> None:
    place = address_of(
        "redis+sentinel://me:p%40ss@one:1,[::1],three:3/main/2?socket_timeout=2&sentinel_password=s%2Fp&sentinel_username=s"
    )
    assert place.nodes == (("one", 1), ("::1", 26379), ("three", 3))
    assert place.service == "main"
    assert place.params == {"username": "me", "password": "p@ss", "db": 2, "socket_timeout": 2.0}
    assert place.sentinel_params == {"username": "s", "password": "s/p", "socket_timeout": 2.0}


def test_the_sentinels_have_the_servers_tls_unless_it_is_switched_off() -> None:
    url = "rediss+sentinel://h/main?ssl_ca_certs=/ca&ssl_check_hostname=no"
    tls = {"ssl": True, "ssl_ca_certs": "/ca", "ssl_check_hostname": False}
    assert (address_of(url).params, address_of(url).sentinel_params) == (tls, tls)
    assert "ssl" not in address_of(f"{url}&sentinel_ssl=no").sentinel_params
    assert address_of("redis+sentinel://h/main?sentinel_ssl=yes").sentinel_params == {"ssl": True}


def test_a_cluster_url_names_nodes_and_no_database() -> None:
    place = address_of("rediss+cluster://:pw@one:1,two?ssl_ca_certs=/ca")
    assert place.nodes == (("one", 1), ("two", 6379))
    assert place.params == {"ssl": True, "password": "pw", "ssl_ca_certs": "/ca"}
    assert address_of("redis+cluster://h:1/0").nodes == (("h", 1),)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis+sentinel://:s3cret@h:1", "names no service: write redis.sentinel://host:port"),
        ("redis+sentinel://:s3cret@h:1/main/x", "names no service"),
        ("redis+sentinel://:s3cret@h:x/main", "is not a Redis URL: write .*redis\\+cluster"),
        ("redis+sentinel://:s3cret@/main", "is not a Redis URL"),
        ("redis+cluster://:s3/cret@h:1", "is not a Redis URL"),
        ("redis+cluster://:s3cret@h:1,,h:2", "is not a Redis URL"),
        ("redis+cluster://:s3cret@h:1/3", "a Redis Cluster has no databases"),
        ("redis+cluster://:s3cret@h:1?db=3", "a Redis Cluster has no databases"),
        ("redis+cluster://:s3cret@h:1?socket_timeout=soon", "is not a Redis URL"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_without_the_password(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        address_of(url)
    assert not any(part in str(caught.value) for part in ("s3", "cret"))


def test_a_password_is_masked_in_every_form() -> None:
    assert masked("rediss+sentinel://me:s/3@one:1,two:2/main?sentinel_password=x") == "rediss+sentinel://me:***@one:1,two:2/main"


@pytest.mark.parametrize(
    ("url", "celerys", "tls"),
    [
        ("redis://:p%2Fw@h/3?socket_timeout=5", "redis://:p%2Fw@h:6379/3", None),
        (
            "rediss://u:pw@[::1]:1?ssl_ca_certs=/ca&ssl_certfile=/crt&ssl_keyfile=/key",
            "rediss://u:pw@[::1]:1/0",
            {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": "/ca", "ssl_certfile": "/crt", "ssl_keyfile": "/key"},
        ),
        ("rediss://h?ssl_cert_reqs=none", "rediss://h:6379/0", {"ssl_cert_reqs": ssl.CERT_NONE}),
        ("unix://:pw@/run/redis.sock?db=2", "redis+socket://:pw@/run/redis.sock?virtual_host=2", None),
    ],
)
def test_a_servers_url_in_celerys_form(url: str, celerys: str, tls: dict[str, object] | None) -> None:
    assert broker_of(url) == Broker(url=celerys, tls=tls)


def test_sentinels_in_celerys_form() -> None:
    broker = broker_of("rediss+sentinel://:pw@one:1,two:2/main/3?sentinel_password=sp")
    assert broker.url == "sentinel://:pw@one:1/3;sentinel://:pw@two:2/3"
    assert broker.tls == {"ssl_cert_reqs": ssl.CERT_REQUIRED}
    assert broker.options == {"master_name": "main", "sentinel_kwargs": {"ssl": True, "password": "sp", "retry": None}}


def test_another_broker_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_BROKER_URL", "redis://broker:1/2")
    assert broker_of("redis+cluster://h:1").url == "redis://broker:1/2"
    monkeypatch.setenv("TRAWL_BROKER_URL", "amqp://me:pw@rabbit//")
    with pytest.raises(ConfigError, match=r"^amqp://me:\*\*\*@rabbit// is not a Redis URL"):
        broker_of("redis://h")


@pytest.mark.parametrize(
    "url",
    [
        "redis://:p@ss/w:rd#%x?@host:7395/3",
        "redis://:pa/ss-w@host:6379/0",
        "redis://:pa?ss-w@host:6379/0",
        "redis://:pa#ss-w@host:6379/0",
        "redis://user:p@ss-w@host:6379/0",
        "rediss://:p@ss-w/x@host",
        "unix://:p@/ss-w#x@/tmp/redis.sock",
    ],
)
def test_an_unquoted_password_is_refused_and_no_piece_of_it_is_shown(url: str) -> None:
    for read in (server_params, check, lambda url: get_redis(url=url)):
        with pytest.raises(ConfigError, match="%40 for @") as refused:
            read(url)
        shown = str(refused.value).partition(" is not a Redis URL")[0]
        assert not [piece for piece in ("ss", "w:rd", "pa", "%x") if piece in shown.replace("rediss", "")]


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://host",
        "redis://:p%40ss%2Fw%3Ard%23%25x%3F@host:7395/3?socket_timeout=5&client_name=me@host",
        "rediss://user:word@[::1]:6379/0?ssl_ca_certs=/etc/ca.pem",
        "unix://:p%40ss@/tmp/redis.sock?db=3",
        "unix:///tmp/a@b/redis.sock",
    ],
)
def test_a_url_in_its_form_is_taken(url: str) -> None:
    check(url)
