"""A stub of the internet: a proxy on this machine that answers for all hosts, each in its own way, and logs what it was asked.

    python -m benchmarks.support.stub_internet PORT FOLDER

FOLDER has `hosts.json`, the `Host` of each name, which may be changed meanwhile, and `stub.pem`. Each request but those of
robots.txt is a line of `requests.log`: the host and the path.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

FAULTS = {
    "page": "",
    "gone": "moved",
    "forbidden": "refused",
    "busy": "refused",
    "challenge": "wall",
    "silent": "unreachable",
    "elsewhere": "moved",
    "broken": "unreachable",
    "closed": "unreachable",
    "robots": "robots",
}
"""The answers of a host, and the verdict on its spider; for pages it follows from what the spider makes of them."""
CHANGED = ("no_phone", "few", "no_markup")
"""Pages that have lost a field, most of their items, or their markup."""
ELSEWHERE = "parked.example"
HOSTS, CERTIFICATE, REQUESTS = "hosts.json", "stub.pem", "requests.log"
SITEMAP, BLOB, PAGE = "sitemap", "blob", "page"
"""Forms of a host's items: pages that a sitemap names, a list as JSON, or one page."""
ITEMS = 8
_STATUSES = {"gone": 404, "forbidden": 403, "busy": 429, "broken": 500}
_TYPES = [
    *("LocalBusiness", "Store", "Restaurant", "BankOrCreditUnion", "GroceryStore", "Hospital", "ClothingStore", "Hotel"),
    *("SportingGoodsStore", "FastFoodRestaurant", "Pharmacy", "Dentist", "GasStation", "AutoRepair", "ExerciseGym", "Bakery"),
]


def example(pattern: Any, turn: int) -> str:
    """Return a text that the parsed pattern matches, another one for each turn."""
    text = ""
    for kind, value in pattern:
        match str(kind):
            case "LITERAL":
                text += chr(value)
            case "IN":
                text += _one_of(value, turn)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = value
                text += example(inner, turn) * min(int(high), low + 1 + turn % 3)
            case "SUBPATTERN":
                text += example(value[3], turn)
            case "BRANCH":
                text += example(value[1][turn % len(value[1])], turn)
            case "ANY" | "NOT_LITERAL" | "CATEGORY":
                text += chr(ord("a") + turn)
    return text


def _one_of(choices: Any, turn: int) -> str:
    kinds = [str(kind) for kind, _ in choices]
    if kinds[0] == "NEGATE":
        return chr(ord("a") + turn)
    if "RANGE" in kinds:
        low, high = choices[kinds.index("RANGE")][1]
        return chr(low + turn % (high - low + 1))
    if "CATEGORY" in kinds:
        what = str(choices[kinds.index("CATEGORY")][1])
        return str(1 + turn) if "DIGIT" in what and "NOT" not in what else chr(ord("a") + turn)
    return chr(choices[turn % len(choices)][1])


def pages_of(rules: list[str], host: str) -> list[str]:
    """Return addresses of a host's pages that a sitemap spider's first rule leads to."""
    found = []
    for rule in rules[:1]:
        for turn in range(ITEMS):
            path = example(sre_parser.parse(rule), turn)
            url = path if path.startswith("http") else f"https://{host}/{path.lstrip('/')}"
            if re.search(rule, url) and urlsplit(url).hostname == host:
                found.append(url)
    return list(dict.fromkeys(found))


def page(fault: str, path: str) -> str:
    """Return a page of a business as structured data; `fault` is one of `CHANGED`, or another one."""
    if fault == "no_markup":
        return "<html><body><p>A new layout.</p></body></html>"
    number = crc32(path.encode()) % 900
    address = {"@type": "PostalAddress", "streetAddress": f"{number} High Street", "addressLocality": "Bath"}
    address |= {"postalCode": "BA1 1AA", "addressRegion": "Somerset", "addressCountry": "GB"}
    shop = {"@context": "https://schema.org", "@type": _TYPES, "name": f"Shop {number}", "address": address}
    shop |= {"geo": {"@type": "GeoCoordinates", "latitude": 51.4 + number / 1000, "longitude": -2.3}}
    hours = {"@type": "OpeningHoursSpecification", "dayOfWeek": ["Monday", "Friday"], "opens": "09:00", "closes": "17:00"}
    shop |= {"email": f"shop{number}@stub.example", "openingHoursSpecification": [hours], "image": "https://stub.example/a.jpg"}
    shop |= {"sameAs": ["https://www.facebook.com/stub"]}
    shop |= {} if fault == "no_phone" else {"telephone": "+44 1225 550000"}
    markup = f'<script type="application/ld+json">{json.dumps(shop)}</script>'
    title = f'<title>Shop {number}</title><meta name="twitter:site" content="@stub">{markup}'
    return f"<html><head>{title}</head><body><h1>Shop {number}</h1></body></html>"


def blob(fault: str, key: list[str], names: list[list[str]]) -> str:
    """Return a list of businesses as JSON, below the keys; `names` are further ones that the spider asks of each."""
    few = {"few": 2, "no_markup": 0}.get(fault, ITEMS)
    found: Any = [_feature(number, names, phone=fault != "no_phone") for number in range(1, few + 1)]
    for name in reversed(key):
        found = {name: found}
    return json.dumps(found)


def _feature(number: int, names: list[list[str]], *, phone: bool) -> dict[str, Any]:
    shop: dict[str, Any] = {chain[0]: f"{number}" for chain in names if len(chain) == 1}
    shop |= {"id": number, "slug": f"shop-{number}", **dict.fromkeys(("name", "title", "storeName"), f"Shop {number}")}
    shop |= dict.fromkeys(("lat", "latitude"), 51.4 + number / 1000) | dict.fromkeys(("lng", "lon", "longitude"), -2.3)
    shop |= dict.fromkeys(("address", "address1", "street"), f"{number} High Street") | {"address2": "", "city": "Bath"}
    shop |= {"state": "Somerset", "zip": "BA1 1AA", "postcode": "BA1 1AA", "country": "GB", "url": f"/shops/{number}"}
    shop |= {"email": f"shop{number}@stub.example"} | ({"phone": "+44 1225 550000"} if phone else {})
    for first, second in (chain for chain in names if len(chain) == 2):
        shop[first] = {**(shop[first] if isinstance(shop.get(first), dict) else {}), second: f"{number}"}
    return shop


def answer(host: dict[str, Any], path: str) -> tuple[int, str, dict[str, str]]:
    """Return status, body and headers."""
    fault, pages, plain = host.get("fault", ""), host.get("pages", []), {"Content-Type": "text/plain"}
    good = fault in (*CHANGED, "page")
    if path == "/robots.txt" and (good or fault == "robots" or not host.get("robots_first")):
        if fault == "robots":
            maps = f"Sitemap: https://{host['robots_first']}/sitemap.xml\n" if host.get("robots_first") else ""
            return 200, f"User-agent: *\nDisallow: /\n{maps}", plain
        maps = f"Sitemap: https://{urlsplit(pages[0]).hostname}/sitemap.xml\n" if pages and good else ""
        return 200, f"User-agent: *\nDisallow:\n{maps}", plain
    if fault in _STATUSES:
        return _STATUSES[fault], "no", {"Retry-After": "1"} if fault == "busy" else {}
    if fault == "challenge":
        return 200, '<html><body><script id="anubis_challenge">{}</script></body></html>', {}
    if fault == "elsewhere":
        return 302, "", {"Location": f"http://{ELSEWHERE}/"}
    if pages and (path.endswith((".xml", ".gz")) or "sitemap" in path):
        urls = "".join(f"<url><loc>{url}</loc></url>" for url in pages[: 1 if fault == "few" else ITEMS])
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return 200, f'<?xml version="1.0"?><urlset xmlns="{space}">{urls}</urlset>', {"Content-Type": "text/xml"}
    if good and host.get("form") == BLOB:
        return 200, blob(fault, host.get("key", []), host.get("names", [])), {"Content-Type": "application/json"}
    return 200, page(fault, path) if good else "<html><body>for sale</body></html>", {}


class Internet:
    """The proxy."""

    def __init__(self, folder: Path) -> None:
        self._table, self._log = folder / HOSTS, (folder / REQUESTS).open("a", buffering=1)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / CERTIFICATE)
        self._hosts: dict[str, Any] = {}
        self._read_at = 0

    async def serve(self, port: int) -> None:
        """Serve for ever."""
        await (await asyncio.start_server(self._client, "127.0.0.1", port, backlog=1000)).serve_forever()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError, ValueError):
            host = ""
            while line := await reader.readline():
                method, target, _ = line.decode("latin-1").split()
                size = 0
                while head := (await reader.readline()).strip():
                    size = int(head.split(b":")[1]) if head.lower().startswith(b"content-length:") else size
                await reader.readexactly(size)
                if method == "CONNECT":
                    host = target.partition(":")[0]
                    if self._of(host).get("fault") == "closed":
                        break
                    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                    await writer.drain()
                    await writer.start_tls(self._context)
                    continue
                url = urlsplit(f"https://{host}{target}" if target.startswith("/") else target)
                await self._answer(writer, url.hostname or host, url.path)
        writer.close()

    def _of(self, host: str) -> dict[str, Any]:
        if (changed := self._table.stat().st_mtime_ns) != self._read_at:
            self._hosts, self._read_at = json.loads(self._table.read_text()), changed
        found: dict[str, Any] = self._hosts.get(host, {})
        return found

    async def _answer(self, writer: asyncio.StreamWriter, name: str, path: str) -> None:
        host = self._of(name)
        if path != "/robots.txt":
            self._log.write(f"{name} {path}\n")
        if host.get("fault") == "silent":
            await asyncio.sleep(60)
        if host.get("fault") == "closed":
            raise ConnectionResetError
        status, body, headers = answer(host, path)
        head = {"Content-Type": "text/html", **headers, "Content-Length": str(len(body.encode()))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n{body}".encode())
        await writer.drain()


def write_certificate(folder: Path) -> None:
    """Write a key and a certificate for any host: crawlers do not check it, as Scrapy does not."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stub")])
    begin, builder = datetime.now(UTC), x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1).not_valid_before(begin).not_valid_after(begin + timedelta(9))
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / CERTIFICATE).write_bytes(secret + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


if __name__ == "__main__":
    asyncio.run(Internet(Path(sys.argv[2])).serve(int(sys.argv[1])))
