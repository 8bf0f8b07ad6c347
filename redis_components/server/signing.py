"""Signatures of data that crosses Redis or the broker, so that a writer there without a key cannot give orders.

    seal("task", b"...")                 "1.1764000000000.9f0c....<64 hex digits>"; raises ConfigError
    fault(seal, "task", b"...")          None, or its fault in one line
    signing_is_on()                      True if this process has keys

HMAC-SHA-256 with a key of TRAWL_SIGNING_KEY, or better of the file that TRAWL_SIGNING_KEY_FILE names: one key a line, the first
one signs, each is accepted. The file is read each time, so keys are changed without a restart; where it cannot be read any more,
the keys that were read last remain. A signature holds for one namespace and one purpose, names its time (ms of the signer's
clock) and has a random part, so that no two are equal. It does not reveal its key. Messages of Celery are signed and checked in
`tasks/guard/signed_messages.py`.
"""

from __future__ import annotations

import hmac
import logging
import re
import secrets
import time
from hashlib import sha256

from redis_components.errors import ConfigError

from .names import fleet_namespace
from .variables import variable

VARIABLE = "TRAWL_SIGNING_KEY"
LEAST_KEY = 32
"""Characters of a key: 128 bits as hexadecimal digits."""
MOST_KEYS = 16
AHEAD_S = 300.0
"""Seconds by which the clock of a signer may be ahead."""

_FORM = re.compile(r"1\.(\d{1,15})\.([0-9a-f]{16})\.([0-9a-f]{64})", re.ASCII)
_last: dict[str, tuple[bytes, ...]] = {}  # of this process, while the file cannot be read

logger = logging.getLogger(__name__)


def read_keys() -> tuple[bytes, ...]:
    """Return the keys, of which the first one signs; () where signing is off. Raises ConfigError, which shows no
    part of a key.
    """
    text = variable(VARIABLE)
    if text is None or (not text.strip() and not variable(f"{VARIABLE}_FILE")):
        return ()
    return parse_keys(text)


def parse_keys(text: str) -> tuple[bytes, ...]:
    """Return the keys between spaces, commas or ends of lines. Raises ConfigError, which shows no part of a key."""
    words = re.split(r"[\s,]+", text.strip())
    if words == [""]:
        raise ConfigError(f"{VARIABLE}: there is no key in it; write one, for example from openssl rand -hex 32")
    if len(words) > MOST_KEYS:
        raise ConfigError(f"{VARIABLE}: there are {len(words)} keys in it, {MOST_KEYS} may be; remove the oldest")
    for number, word in enumerate(words, 1):
        if len(word) < LEAST_KEY:
            raise ConfigError(
                f"{VARIABLE}: key {number} has {len(word)} characters, fewer than {LEAST_KEY};"
                " write another one, for example from openssl rand -hex 32"
            )
    return tuple(word.encode() for word in words)


def signing_is_on() -> bool:
    """Return True if this process has keys: it then signs, and accepts only signed data."""
    return bool(_lasting_keys())


def seal(purpose: str, *parts: str | bytes) -> str:
    """Return a signature over `parts`. Raises ConfigError where there is no key."""
    keys = _lasting_keys()
    if not keys:
        raise ConfigError(f"there is no key to sign with: set {VARIABLE}_FILE")
    at_ms, nonce = round(time.time() * 1000), secrets.token_hex(8)
    return f"1.{at_ms}.{nonce}.{_code(keys[0], purpose, at_ms, nonce, parts)}"


def fault(signature: object, purpose: str, *parts: str | bytes, oldest_s: float | None = None) -> str | None:
    """Return the fault of a signature over `parts`, or None; it expires `oldest_s` seconds after it was made."""
    if not isinstance(signature, str):
        return "is not signed"
    if not (form := _FORM.fullmatch(signature)):
        return "has a signature that cannot be read"
    at_ms, nonce = int(form[1]), form[2]
    # Every key is tried, so that the time taken does not reveal which one fits.
    fits = [hmac.compare_digest(form[3], _code(key, purpose, at_ms, nonce, parts)) for key in _lasting_keys()]
    if not any(fits):
        return "has a signature that does not fit: it was changed, or signed with another key or for another fleet"
    age_s = time.time() - at_ms / 1000
    if age_s < -AHEAD_S:
        return f"was signed {-age_s:.0f} s in the future"
    if oldest_s is not None and age_s > oldest_s:
        return f"was signed {age_s:.0f} s ago, and signatures hold for {oldest_s:g} s"
    return None


def signed_at(signature: str) -> float:
    """Return the time of a signature that fits, in epoch seconds of the signer's clock."""
    return int(signature.split(".")[1]) / 1000


def _code(key: bytes, purpose: str, at_ms: int, nonce: str, parts: tuple[str | bytes, ...]) -> str:
    code = hmac.new(key, digestmod=sha256)
    for part in ("trawl", purpose, fleet_namespace(), str(at_ms), nonce, *parts):
        raw = part.encode() if isinstance(part, str) else part
        code.update(len(raw).to_bytes(8, "big"))  # else ("ab", "c") would be ("a", "bc")
        code.update(raw)
    return code.hexdigest()


def _lasting_keys() -> tuple[bytes, ...]:
    try:
        keys = read_keys()
    except ConfigError as error:
        if VARIABLE not in _last:
            raise
        if "logged" not in _last:
            logger.error("the keys that were read before remain: %s", error)
            _last["logged"] = ()
        return _last[VARIABLE]
    _last.pop("logged", None)
    if keys:
        _last[VARIABLE] = keys
    return keys
