"""Decides if an address is public, and which others the configuration allows; `client.py` connects to no other
address.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies

from workers.environment.variables import Crawlers

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

# https://www.iana.org/assignments/iana-ipv4-special-registry and its sibling for IPv6. Written down, since `is_global` differs
# between versions of Python and takes multicast for global.
_NOT_PUBLIC = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
        "240.0.0.0/4",
    )
)  # fmt: skip
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # all else is loopback, private, link-local, multicast or not in use
_NOT_PUBLIC_6 = tuple(IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20"))
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """The private addresses that may be connected to: all, or those that stand in `hosts` as they are.

    `hosts` are IP addresses and `localhost`, as a person wrote them down; a name among them allows nothing. A host of `trusted`
    may be, or resolve to, any address.
    """

    everything: bool = False
    hosts: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()

    def __or__(self, other: Allowance) -> Allowance:
        """Return what either of both allows."""
        return Allowance(
            everything=self.everything or other.everything,
            hosts=self.hosts | other.hosts,
            trusted=self.trusted | other.trusted,
        )


NOTHING = Allowance()


def is_public(address: str) -> bool:
    """Return True if an IP address is public; an IPv6 address that stands for an IPv4 address is judged as the latter."""
    found = parsed(address)
    if found is None:
        return False
    if isinstance(found, IPv4Address):
        return not any(found in network for network in _NOT_PUBLIC)
    if (inner := found.ipv4_mapped or found.sixtofour) is not None:
        return is_public(str(inner))
    last = IPv4Address(int(found) & 0xFFFFFFFF)
    if found in _NAT64:
        return is_public(str(last))
    if (int(found) >> 32) & 0xFFFFFFFF in _ISATAP and not is_public(str(last)):
        return False
    return found in _GLOBAL_UNICAST and not any(found in network for network in _NOT_PUBLIC_6)


def parsed(address: str) -> IPv4Address | IPv6Address | None:
    """Return an IP address; None for any other text."""
    try:
        return ip_address(address)
    except ValueError:
        return None


def private_addresses_allowed() -> bool:
    """Return True if the operator lets every crawler reach addresses that are not public (TRAWL_ALLOW_PRIVATE). Raises
    ConfigError.
    """
    return Crawlers.read().allow_private


def allowance_in(value: object) -> Allowance:
    """Return what ALLOW_PRIVATE_ADDRESSES allows: a switch, or hosts as a list or as text with commas."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple | set | frozenset):
        return Allowance(everything=bool(value))
    words = {str(one).strip().lower() for one in value}
    return Allowance(everything=bool(words & {"true", "1"}), trusted=frozenset(words - {"", "true", "1", "false", "0"}))


def allowance_by(settings: BaseSettings) -> Allowance:
    """Return what a crawl by these settings may reach: the hosts that they name, and the proxies of the environment, if used."""
    named = getproxies() if settings.getbool("HTTPPROXY_ENABLED") else {}
    proxies = (
        urlsplit(url if "//" in url else f"//{url}").hostname for scheme, url in named.items() if scheme in ("http", "https")
    )
    trusted = frozenset(filter(None, proxies))
    return allowance_in(settings.get("ALLOW_PRIVATE_ADDRESSES", True)) | Allowance(trusted=trusted)
