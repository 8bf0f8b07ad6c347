"""Which addresses are public, and which others may be reached."""

from __future__ import annotations

import pytest

from workers.http.client import may_connect
from workers.http.public_addresses import NOTHING, Allowance, is_public


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.0", "192.169.0.1",
        "223.255.255.255", "2606:2800:220:1::1", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
        "2a00:1450:4001:1:0:5efe:8.8.8.8",
    ],
)  # fmt: skip
def test_a_public_address(address: str) -> None:
    assert is_public(address)
    assert may_connect(NOTHING, "books.example", address)


NOT_PUBLIC = (
    "0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.8", "192.0.0.170", "192.0.2.1", "192.88.99.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "100::1", "2001::1", "2001:2::1",
    "2001:db8::1", "3fff::1", "4000::1", "5f00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254", "64:ff9b:1::8.8.8.8", "2002:7f00:1::1", "2002:a00:1::1", "2a00:1450:4001:1:0:5efe:10.0.0.1",
    "2a00:1450:4001:1:200:5efe:192.168.0.1",
    "", "books.example", "127.1", "2130706433", "0x7f000001", "1.2.3.4.5", "8.8.8.8 ",
)  # fmt: skip


def test_no_public_address() -> None:
    assert [address for address in NOT_PUBLIC if is_public(address)] == []
    named, everything = Allowance(hosts=frozenset({"books.example"})), Allowance(everything=True)
    for allowance in (NOTHING, named):  # a name allows nothing
        assert [address for address in NOT_PUBLIC if may_connect(allowance, "books.example", address)] == []
    assert all(may_connect(everything, "books.example", address) for address in NOT_PUBLIC)


def test_an_address_that_a_person_wrote_down_is_allowed_as_it_is_and_no_other() -> None:
    allowed = Allowance(hosts=frozenset({"127.0.0.1", "::1", "10.1.2.3", "localhost", "api.localhost"}))
    assert may_connect(allowed, "127.0.0.1", "127.0.0.1")
    assert may_connect(allowed, "::1", "::1")
    assert may_connect(allowed, "10.1.2.3", "10.1.2.3")
    assert not may_connect(allowed, "127.0.0.2", "127.0.0.2")
    assert not may_connect(allowed, "10.1.2.3", "10.1.2.4")
    assert not may_connect(allowed, "books.example", "127.0.0.1")
    for name in ("localhost", "LOCALHOST", "api.localhost"):
        assert may_connect(allowed, name, "127.0.0.1")
        assert may_connect(allowed, name, "::1")
        assert not may_connect(allowed, name, "10.1.2.3"), "who answers for localhost does not choose another machine"
    assert not may_connect(allowed, "other.localhost", "127.0.0.1")
