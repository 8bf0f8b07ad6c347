"""Items as objects of JSON Lines in S3-compatible storage."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from typing import Any

from redis_components.errors import ConfigError
from workers.environment.variables import S3

from .parts import MOST_BYTES
from .sink import Item, SinkUnavailable, to_line

CONNECT_S, ANSWER_S = 5.0, 20.0
"""Together shorter than the consumer's lock lives."""
_LATER = frozenset(
    {"InternalError", "OperationAborted", "RequestTimeout", "ServiceUnavailable", "SlowDown", "RequestTimeTooSkewed"}
)


class S3Objects:
    """Puts parts as `<prefix>/<name>.jsonl`, or `.jsonl.gz`, into a bucket of the server that the environment names."""

    def __init__(self, url: str) -> None:
        scheme, _, place = url.partition("://")
        self._bucket, _, prefix = place.partition("/")
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._zipped = scheme == "s3+gzip"
        self._client = _client(S3.read())

    def put(self, name: str, items: Sequence[Item]) -> dict[int, str]:
        """Put them, in one request; an object of that name is replaced."""
        from minio.error import MinioException, S3Error
        from urllib3.exceptions import HTTPError

        body = b"".join(to_line(one.value) for one in items)
        if self._zipped:
            body = gzip.compress(body, 6, mtime=0)
        path = f"{self._prefix}{name}.jsonl{'.gz' if self._zipped else ''}"
        kind = "application/gzip" if self._zipped else "application/x-ndjson"
        shown = f"s3://{self._bucket}/{path}"
        try:
            self._client.put_object(self._bucket, path, io.BytesIO(body), len(body), kind, part_size=4 * MOST_BYTES)
        except S3Error as error:
            message = f"{error.code}: {' '.join(str(error.message).split())[:200]}"
            if error.code in _LATER or error.response.status >= 500:
                raise SinkUnavailable(f"{shown}: {message}") from None
            raise ConfigError(f"{shown}: {message}: no item was taken; correct the bucket, or TRAWL_S3_…") from None
        except ValueError:  # of the providers; a role may come
            raise SinkUnavailable(f"{shown}: no login is found: set TRAWL_S3_ACCESS_KEY and TRAWL_S3_SECRET_KEY") from None
        except (MinioException, HTTPError, OSError) as error:
            raise SinkUnavailable(
                f"{shown} cannot be put: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            ) from None
        return {}


def _client(settings: S3) -> Any:
    """Return the client. Raises ConfigError."""
    try:
        import urllib3
        from minio import Minio
        from minio.credentials.providers import ChainedProvider, EnvAWSProvider, IamAwsProvider, StaticProvider
    except ImportError:
        raise ConfigError("s3: needs minio: install it with pip install 'trawl-fleet[s3]'") from None
    key, secret = settings.s3_access_key, settings.s3_secret_key
    if (key is None) != (secret is None):
        raise ConfigError("TRAWL_S3_ACCESS_KEY and TRAWL_S3_SECRET_KEY: set both, or none for those of AWS's environment")
    login: Any = ChainedProvider([EnvAWSProvider(), IamAwsProvider()])
    if key and secret:
        login = StaticProvider(key.get_secret_value(), secret.get_secret_value())
    scheme, _, host = settings.s3_endpoint.partition("://")
    timeout = urllib3.Timeout(connect=CONNECT_S, read=ANSWER_S)
    try:
        return Minio(
            host.rstrip("/"),
            secure=scheme == "https",
            region=settings.s3_region or None,
            credentials=login,
            http_client=urllib3.PoolManager(timeout=timeout, retries=False),
        )
    except ValueError as error:
        raise ConfigError(
            f"TRAWL_S3_ENDPOINT={settings.s3_endpoint!r}: {error}: write https://HOST or http://HOST:PORT"
        ) from None
