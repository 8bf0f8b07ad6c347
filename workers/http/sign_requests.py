"""Proof of a request's sender: HTTP message signatures (RFC 9421) as in Web Bot Auth, with an Ed25519 key; each request of a
crawl is signed, for any spider, where the fleet has a key for it.

DOWNLOADER_MIDDLEWARES = {"workers.http.sign_requests.SignRequests": 960}

A site fetches the public key from the host in `Signature-Agent`, under `DIRECTORY`, and identifies the fleet by it and not by
addresses. The signature covers the requested host and the key's location; it is valid for `VALID_S` and has a nonce.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from redis_components.errors import ConfigError
from workers.environment.variables import BotAuth

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

DIRECTORY = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE = "application/http-message-signatures-directory+json"
VALID_S = 300
HEADERS = ("Signature-Agent", "Signature-Input", "Signature")
NO_LIBRARY = "signing requests needs the package http-message-signatures: pip install 'trawl-fleet[bot-auth]'"


@dataclass
class _Message:
    """The message that the library signs."""

    method: str
    url: str
    headers: dict[str, str]


@dataclass
class _Answer:
    """The same of an answer."""

    request: _Message
    headers: dict[str, str] = field(default_factory=dict)
    status_code: int = 200


class BotIdentity:
    """The fleet's key, and where its public part is served (`agent`, an https URL). Raises ConfigError."""

    def __init__(self, key: str, agent: str) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
            from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
            from http_message_signatures import HTTPMessageSigner, HTTPSignatureKeyResolver, algorithms
        except ImportError as error:
            raise ConfigError(NO_LIBRARY) from error
        try:
            private = load_pem_private_key(key.encode(), None)
        except (ValueError, TypeError) as error:
            raise ConfigError(
                "TRAWL_BOT_KEY is not a private key in PEM without a password: make one with `trawl config signing-key new`"
            ) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise ConfigError("TRAWL_BOT_KEY is not an Ed25519 key: make one with `trawl config signing-key new`")
        self.agent = agent
        raw = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self._x = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

        class Own(HTTPSignatureKeyResolver):
            def resolve_private_key(self, key_id: str) -> Any:  # noqa: ARG002 - the library's interface
                return private

            def resolve_public_key(self, key_id: str) -> Any:  # noqa: ARG002 - as above
                return private.public_key()

        self._signer = HTTPMessageSigner(signature_algorithm=algorithms.ED25519, key_resolver=Own())

    @property
    def key_id(self) -> str:
        """The thumbprint of the public key (RFC 7638, RFC 8037), by which a site knows it."""
        canonical = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": self._x}, separators=(",", ":"))
        return base64.urlsafe_b64encode(hashlib.sha256(canonical.encode()).digest()).rstrip(b"=").decode()

    def headers_for(self, url: str, method: str = "GET") -> dict[str, str]:
        """Return the signed headers of a request."""
        message = _Message(method, url, {"Signature-Agent": f'"{self.agent}"'})
        self._sign(message, "web-bot-auth", ("@authority", "signature-agent"))
        return message.headers

    def directory(self) -> dict[str, Any]:
        """Return the public key, as it is served under `DIRECTORY` (a JSON Web Key Set)."""
        return {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": self._x, "kid": self.key_id, "use": "sig", "alg": "EdDSA"}]}

    def directory_headers(self, url: str) -> dict[str, str]:
        """Return the headers of the directory's response: signed for the requested host, by the key that it names."""
        answer = _Answer(_Message("GET", url, {}))
        self._sign(answer, "http-message-signatures-directory", ('"@authority";req',))
        return answer.headers

    def _sign(self, message: _Message | _Answer, tag: str, covered: tuple[str, ...]) -> None:
        now = datetime.now(UTC)
        self._signer.sign(
            message,
            key_id=self.key_id,
            created=now,
            expires=now + timedelta(seconds=VALID_S),
            nonce=base64.b64encode(secrets.token_bytes(32)).decode(),
            label="trawl",
            tag=tag,
            covered_component_ids=covered,
        )


def bot_identity() -> BotIdentity | None:
    """Return the identity of the environment (TRAWL_BOT_KEY, TRAWL_BOT_AGENT); None if unset. Raises ConfigError."""
    declared = BotAuth.read()
    key = declared.bot_key.get_secret_value() if declared.bot_key else ""
    if not key and not declared.bot_agent:
        return None
    if not key or not declared.bot_agent:
        missing = "TRAWL_BOT_AGENT, where its public part is served," if key else "TRAWL_BOT_KEY_FILE, the private key,"
        raise ConfigError(f"{missing} is missing: requests are signed with both (docs/politeness.md)")
    return _identity(key, declared.bot_agent)


@lru_cache(maxsize=4)
def _identity(key: str, agent: str) -> BotIdentity:
    return BotIdentity(key, agent)


def new_key() -> bytes:
    """Generate a private key, in PEM. Raises ConfigError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    except ImportError as error:
        raise ConfigError(NO_LIBRARY) from error
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class SignRequests:
    """Innermost downloader middleware: what it adds is of one request alone, and never written to Redis."""

    def __init__(self, identity: BotIdentity) -> None:
        self._identity = identity

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:  # noqa: ARG003 - so it is called
        """Return the middleware. Raises NotConfigured where there is no key, ConfigError for a wrong one."""
        from scrapy.exceptions import NotConfigured  # not where a page serves the key

        identity = bot_identity()
        if identity is None:
            raise NotConfigured
        return cls(identity)

    def process_request(self, request: Request) -> None:
        """Sign it."""
        for name, value in self._identity.headers_for(request.url, request.method).items():
            request.headers[name] = value

    def process_response(self, request: Request, response: Response) -> Response:
        """Take the signature off."""
        self._unsigned(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:  # noqa: ARG002 - so it is called
        """Take the signature off."""
        self._unsigned(request)

    @staticmethod
    def _unsigned(request: Request) -> None:
        for name in HEADERS:
            request.headers.pop(name, None)
