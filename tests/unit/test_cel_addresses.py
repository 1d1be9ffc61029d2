"""IP addresses and networks in expressions. Expected values are those of Kubernetes 1.37."""

from __future__ import annotations

import pytest

from dra_core.cel.faults import EvalError
from dra_core.cel.library.addresses import CidrValue, IpValue, parse_cidr, parse_ip
from dra_core.cel.values import equal, size_of, type_of
from dra_testing.cel_calls import call


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::", "::"),
        ("::1", "::1"),
        ("1::", "1::"),
        ("2001:DB8::ABCD", "2001:db8::abcd"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("0:0:1:0:0:0:0:1", "0:0:1::1"),
        ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("::1.2.3.4", "::102:304"),
        ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
        ("0000:0001::", "0:1::"),
    ],
)
def test_addresses_and_how_they_are_written(text: str, canonical: str) -> None:
    address = call("string_to_ip", text)
    assert call("ip_to_string", address) == canonical
    assert call("is_ip", text) is True
    assert call("ip_is_canonical", text) is (text == canonical)
    assert call("ip_family", address) == (6 if ":" in text else 4)
    assert equal(address, call("string_to_ip", canonical))


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "1.2.3",
            "1.2.3.4.5",
            "256.0.0.1",
            "01.2.3.4",
            "1.2.3.04",
            "1.2.3.4 ",
            "1.2.3.\u0664",
        ],
        *[":", ":::", ":::1", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "g::"],
        *[
            "1:2:3:4:5:6:7:8::",
            "::1.2.3",
            "::01.2.3.4",
            "[::1]",
            "1.2.3.4/8",
            "fe80::1%eth0",
            "::%",
        ],
        *[
            "::ffff:1.2.3.4",
            "::ffff:0:0",
            "0:0:0:0:0:ffff:102:304",
            "1.2.3.4%a",
            "+1.2.3.4",
            "0x1.2.3.4",
        ],
    ],
)
def test_texts_that_are_no_addresses(text: str) -> None:
    assert call("is_ip", text) is False
    for overload in ("string_to_ip", "ip_is_canonical"):
        with pytest.raises(EvalError):
            call(overload, text)


_KINDS = (
    "is_unspecified",
    "is_loopback",
    "is_link_local_multicast",
    "is_link_local_unicast",
    "is_global_unicast",
)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("0.0.0.0", {"is_unspecified"}),  # noqa: S104  # nothing is bound
        ("::", {"is_unspecified"}),
        ("127.0.0.1", {"is_loopback"}),
        ("127.255.255.255", {"is_loopback"}),
        ("128.0.0.0", {"is_global_unicast"}),
        ("126.255.255.255", {"is_global_unicast"}),
        ("::1", {"is_loopback"}),
        ("::2", {"is_global_unicast"}),
        ("224.0.0.255", {"is_link_local_multicast"}),
        ("224.0.1.0", set()),
        ("239.255.255.255", set()),
        ("240.0.0.1", {"is_global_unicast"}),
        ("255.255.255.255", set()),
        ("255.255.255.254", {"is_global_unicast"}),
        ("ff02::1", {"is_link_local_multicast"}),
        ("ff12::1", {"is_link_local_multicast"}),
        ("ff01::1", set()),
        ("ff05::1", set()),
        ("169.254.0.0", {"is_link_local_unicast"}),
        ("169.255.0.0", {"is_global_unicast"}),
        ("fe80::1", {"is_link_local_unicast"}),
        ("febf:ffff::", {"is_link_local_unicast"}),
        ("fec0::", {"is_global_unicast"}),
        ("10.0.0.1", {"is_global_unicast"}),
        ("fd00::1", {"is_global_unicast"}),
        ("0.0.0.1", {"is_global_unicast"}),
    ],
)
def test_kinds_of_addresses(text: str, kinds: set[str]) -> None:
    address = parse_ip(text)
    assert {kind for kind in _KINDS if call(f"ip_{kind}", address)} == kinds


@pytest.mark.parametrize(
    ("text", "shown", "address", "length", "masked"),
    [
        ("10.1.2.3/8", "10.1.2.3/8", "10.1.2.3", 8, "10.0.0.0/8"),
        ("10.1.2.3/32", "10.1.2.3/32", "10.1.2.3", 32, "10.1.2.3/32"),
        ("10.1.2.3/0", "10.1.2.3/0", "10.1.2.3", 0, "0.0.0.0/0"),
        ("2001:DB8::1/33", "2001:db8::1/33", "2001:db8::1", 33, "2001:db8::/33"),
        ("::1/128", "::1/128", "::1", 128, "::1/128"),
        ("::/0", "::/0", "::", 0, "::/0"),
    ],
)
def test_networks(text: str, shown: str, address: str, length: int, masked: str) -> None:
    network = call("string_to_cidr", text)
    assert call("is_cidr", text) is True
    assert call("cidr_to_string", network) == shown
    assert str(call("cidr_ip", network)) == address
    assert call("cidr_prefix_length", network) == length
    assert str(call("cidr_masked", network)) == masked


@pytest.mark.parametrize(
    "text",
    [
        *["", "10.0.0.0", "10.0.0.0/", "/8", "10.0.0.0/33", "::/129", "10.0.0.0/08", "10.0.0.0/+8"],
        *[
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
            "10.0.0.0/8 ",
            "10.0.0.0/\u0668",
            "fe80::1%eth0/64",
            "10.0.0/8",
        ],
        *["::ffff:1.2.3.4/120", "10.0.0.0/00", "10.0.0.0/1000"],
    ],
)
def test_texts_that_are_no_networks(text: str) -> None:
    assert call("is_cidr", text) is False
    with pytest.raises(EvalError):
        call("string_to_cidr", text)


@pytest.mark.parametrize(
    ("network", "address", "expected"),
    [
        ("10.0.0.0/8", "10.255.255.255", True),
        ("10.0.0.0/8", "11.0.0.0", False),
        ("10.9.9.9/8", "10.0.0.0", True),
        ("10.0.0.1/32", "10.0.0.1", True),
        ("10.0.0.1/32", "10.0.0.0", False),
        ("0.0.0.0/0", "255.255.255.255", True),
        ("0.0.0.0/0", "::1", False),
        ("::/0", "1.2.3.4", False),
        ("::/0", "ffff::", True),
        ("fe80::/10", "febf::1", True),
        ("fe80::/10", "fec0::1", False),
    ],
)
def test_addresses_in_networks(network: str, address: str, expected: bool) -> None:
    assert call("cidr_contains_ip_string", parse_cidr(network), address) is expected
    assert call("cidr_contains_ip_ip", parse_cidr(network), parse_ip(address)) is expected


@pytest.mark.parametrize(
    ("network", "other", "expected"),
    [
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("10.0.0.0/8", "10.0.0.0/8", True),
        ("10.0.0.0/8", "10.0.0.0/7", False),
        ("10.0.0.0/8", "11.0.0.0/8", False),
        ("10.0.0.1/8", "10.255.0.0/9", True),
        ("0.0.0.0/0", "1.2.3.4/32", True),
        ("0.0.0.0/0", "::/0", False),
        ("::/0", "::/0", True),
    ],
)
def test_networks_in_networks(network: str, other: str, expected: bool) -> None:
    assert call("cidr_contains_cidr_string", parse_cidr(network), other) is expected
    assert call("cidr_contains_cidr", parse_cidr(network), parse_cidr(other)) is expected


@pytest.mark.parametrize(
    ("overload", "text"),
    [
        ("cidr_contains_ip_string", "x"),
        ("cidr_contains_ip_string", "::ffff:10.0.0.1"),
        ("cidr_contains_cidr_string", "10.0.0.1"),
    ],
)
def test_texts_in_networks_that_cannot_be_read(overload: str, text: str) -> None:
    with pytest.raises(EvalError):
        call(overload, parse_cidr("10.0.0.0/8"), text)


def test_equality() -> None:
    assert equal(parse_ip("::1"), parse_ip("0::1"))
    assert not equal(parse_ip("0.0.0.1"), parse_ip("::1"))
    assert equal(parse_cidr("10.0.0.0/8"), parse_cidr("10.0.0.0/8"))
    assert not equal(parse_cidr("10.0.0.1/8"), parse_cidr("10.0.0.0/8"))
    assert not equal("::1", parse_ip("::1"))
    assert not equal(parse_ip("::1"), None)
    for value in (parse_ip("::1"), parse_cidr("::1/128")):
        for other in (
            "::1",
            1,
            parse_cidr("::/0") if isinstance(value, IpValue) else parse_ip("::"),
        ):
            with pytest.raises(EvalError, match="no such overload"):
                equal(value, other)


def test_sizes_and_types() -> None:
    assert [size_of(parse_ip(text)) for text in ("1.2.3.4", "::")] == [4, 16]
    networks = ["1.2.3.4/0", "1.2.3.4/1", "1.2.3.4/8", "1.2.3.4/9", "::/128"]
    assert [size_of(parse_cidr(text)) for text in networks] == [0, 1, 1, 2, 16]
    assert type_of(parse_ip("::")).name == "net.IP"
    assert type_of(CidrValue(parse_ip("::"), 0)).name == "net.CIDR"
