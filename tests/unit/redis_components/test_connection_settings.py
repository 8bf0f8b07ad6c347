"""`get_redis` and `from_settings`: what projects written for scrapy-redis rely on."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from scrapy.settings import Settings

from redis_components import connection, defaults
from redis_components.errors import ConfigError


class Client:
    """Notes how it was made."""

    def __init__(self, **kwargs: Any) -> None:
        self.made_with = kwargs

    @classmethod
    def from_url(cls, url: str, **kwargs: Any) -> Client:
        return cls(from_url=url, **kwargs)


def made_by_settings(**settings: Any) -> dict[str, Any]:
    settings["REDIS_PARAMS"] = {"redis_cls": Client, **settings.get("REDIS_PARAMS", {})}
    client: Any = connection.from_settings(Settings(settings))
    assert isinstance(client, Client)
    return client.made_with


def test_both_names_are_the_same_function() -> None:
    assert connection.from_settings is connection.get_redis_from_settings


def test_the_default_client_is_made_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client = connection.from_settings(Settings())
    assert type(client) is defaults.REDIS_CLS is redis.Redis
    kwargs = client.connection_pool.connection_kwargs
    assert (kwargs["host"], kwargs["port"], kwargs["db"]) == ("localhost", 6379, 0)


def test_arguments_are_passed_on_exactly() -> None:
    one: Any = connection.get_redis(redis_cls=Client, param="foo")
    two: Any = connection.get_redis(redis_cls=Client, param="foo", url="redis://h:1/0")
    assert one.made_with == {"param": "foo"}
    assert two.made_with == {"param": "foo", "from_url": "redis://h:1/0"}


def test_nothing_is_added_to_the_defaults() -> None:
    assert made_by_settings() == defaults.REDIS_PARAMS


def test_params_are_merged_over_the_defaults_and_leave_those_alone() -> None:
    before = dict(defaults.REDIS_PARAMS)
    assert made_by_settings(REDIS_PARAMS={"socket_timeout": 1, "db": 3}) == {**before, "socket_timeout": 1, "db": 3}
    assert before == defaults.REDIS_PARAMS


def test_each_setting_goes_to_its_parameter() -> None:
    settings = {"REDIS_HOST": "h", "REDIS_PORT": 1, "REDIS_DB": 2, "REDIS_ENCODING": "latin-1", "REDIS_DECODE_RESPONSES": True}
    expected = {"host": "h", "port": 1, "db": 2, "encoding": "latin-1", "decode_responses": True}
    assert made_by_settings(**settings) == {**defaults.REDIS_PARAMS, **expected}


def test_the_url_wins_over_host_and_port() -> None:
    client = connection.from_settings(Settings({"REDIS_HOST": "other", "REDIS_PORT": 1, "REDIS_URL": "redis://:pw@h:7/3"}))
    kwargs = client.connection_pool.connection_kwargs
    assert [kwargs[name] for name in ("host", "port", "db", "password")] == ["h", 7, 3, "pw"]


def test_empty_settings_do_not_count() -> None:
    assert made_by_settings(REDIS_URL=None, REDIS_HOST="", REDIS_DB=0, REDIS_PARAMS={"db": 5}) == {
        **defaults.REDIS_PARAMS,
        "db": 5,
    }


def test_the_class_may_be_a_dotted_path() -> None:
    assert made_by_settings(REDIS_PARAMS={"redis_cls": f"{__name__}.Client"}) == defaults.REDIS_PARAMS


@pytest.mark.parametrize("path", ["Redis", "no.such.module.Redis", "redis.NoSuchClass", ""])
def test_a_path_that_leads_nowhere_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=r"REDIS_PARAMS\['redis_cls'\] = '.*' names no class"):
        made_by_settings(REDIS_PARAMS={"redis_cls": path})


def test_equal_settings_give_the_same_client_while_anybody_has_it() -> None:
    def made(**settings: Any) -> Any:
        return connection.from_settings(Settings(settings))

    one = made(REDIS_PORT=1, REDIS_PARAMS={"socket_timeout": 1})
    assert made(REDIS_PARAMS={"port": 1, "socket_timeout": 1}) is one
    assert made(REDIS_PORT=1) is not one
    assert connection.connect("redis://h:1") is made(REDIS_URL="redis://h:1"), "tools and Scrapy's components, too"
    gone = weakref.ref(one)
    del one
    assert gone() is None, "and so are its connections"


def test_a_shared_client_that_one_holder_closes_stays_connected_for_the_others(redis_url: str) -> None:
    one = connection.from_settings(Settings({"REDIS_URL": redis_url}))
    pool = one.connection_pool
    used = pool.get_connection()
    try:
        used.send_command("CLIENT", "ID")
        number = used.read_response()
        with connection.connect(redis_url) as other:
            assert other is one
        used.send_command("CLIENT", "ID")
        assert used.read_response() == number, "in the middle of a command its thread would get an error that is none of Redis's"
    finally:
        pool.release(used)
        pool.disconnect()


def test_a_client_of_a_class_or_with_an_object_of_the_users_is_not_shared() -> None:
    for params in ({"redis_cls": Client}, {"retry": Retry(NoBackoff(), 1)}):
        settings = Settings({"REDIS_PARAMS": params})
        assert connection.from_settings(settings) is not connection.from_settings(settings)


def test_a_url_that_is_none_is_one_clear_error_without_the_password() -> None:
    for url in ("redis://:s3cret@h:port", "redis+sentinel://:s3cret@h"):
        with pytest.raises(ConfigError) as caught:
            connection.from_settings(Settings({"REDIS_URL": url}))
        assert "s3cret" not in str(caught.value)


def test_a_retry_of_the_users_is_taken_and_a_database_of_a_cluster_refused() -> None:
    retry = Retry(NoBackoff(), 1)
    settings = Settings({"REDIS_URL": "redis+sentinel://h/main", "REDIS_PARAMS": {"retry": retry, "db": 3}})
    kwargs = connection.from_settings(settings).connection_pool.connection_kwargs
    assert (kwargs["retry"], kwargs["db"], kwargs["socket_timeout"]) == (retry, 3, 5)
    with pytest.raises(ConfigError, match="a Redis Cluster has no databases: leave REDIS_DB = 3 away"):
        connection.from_settings(Settings({"REDIS_URL": "redis+cluster://h", "REDIS_DB": 3}))


def test_nothing_is_sent_before_the_first_command() -> None:
    for url in ("redis+sentinel://127.0.0.1:1/main", "redis+cluster://127.0.0.1:1"):
        client = connection.from_settings(Settings({"REDIS_URL": url}))
        for _ in range(2):
            with pytest.raises(redis.ConnectionError):
                client.get("{a}")
        client.close()
