"""Names: what the API, CDI and the kernel allow."""

from __future__ import annotations

import pytest

from dra_core import names
from dra_core.errors import InvalidName
from dra_core.names import DriverName, PodUID, PoolName

DRIVER = DriverName("gpu.example.com")
POD = PodUID("0f3d8a5e-1111-2222-3333-444455556666")


@pytest.mark.parametrize("value", ["gpu.example.com", "a", "1-2.x", "a" * 63])
def test_driver_names(value: str) -> None:
    assert names.check_driver_name(value) == value


@pytest.mark.parametrize("value", ["", "Gpu", "a_b", "-a", "a-", "a..b", "a" * 64, "a/b", "a\n"])
def test_bad_driver_names(value: str) -> None:
    with pytest.raises(InvalidName, match="driver name"):
        names.check_driver_name(value)


@pytest.mark.parametrize("value", ["node-1", "a/b", "rack-1.example/node-2"])
def test_pool_names_may_have_slashes(value: str) -> None:
    assert names.check_pool_name(value) == value


@pytest.mark.parametrize("value", ["", "/a", "a/", "a//b", "A", "a" * 254])
def test_bad_pool_names(value: str) -> None:
    with pytest.raises(InvalidName, match="pool name"):
        names.check_pool_name(value)


@pytest.mark.parametrize("value", ["model", "_x", "example.com/model", "a" * 32])
def test_qualified_names(value: str) -> None:
    assert names.check_qualified_name("attribute", value) == value


@pytest.mark.parametrize("value", ["", "1a", "a-b", "/a", "a" * 33, "Example.com/a", "a/b/c", "x/"])
def test_bad_qualified_names(value: str) -> None:
    with pytest.raises(InvalidName, match="attribute"):
        names.check_qualified_name("attribute", value)


@pytest.mark.parametrize("value", ["../x", ".", "", "a/b", "a\0", "x" * 129])
def test_a_uid_that_could_leave_its_folder_is_refused(value: str) -> None:
    with pytest.raises(InvalidName, match="claim UID"):
        names.check_uid("claim UID", value)


@pytest.mark.parametrize("value", ["1gpu/claim", "bad/vendor/x", "v/1gpu", "v/", "/c", "v/a.b"])
def test_bad_cdi_kinds(value: str) -> None:
    with pytest.raises(InvalidName, match="CDI kind"):
        names.check_cdi_kind(value)


def test_cdi_class_may_have_underscores() -> None:
    assert names.check_cdi_kind("vendor.example/gpu_x") == "vendor.example/gpu_x"


def test_a_socket_path_is_counted_in_bytes() -> None:
    assert names.check_socket_path("socket", "/" + "a" * 106)
    with pytest.raises(InvalidName, match="108 bytes"):
        names.check_socket_path("socket", "/" + "a" * 107)
    with pytest.raises(InvalidName, match="109 bytes"):
        names.check_socket_path("socket", "/" + "ü" * 54)


def test_service_sockets_carry_the_pod_uid_or_its_hash() -> None:
    assert names.service_socket_name(None, 80) == "dra.sock"
    assert names.service_socket_name(POD, 80) == f"dra-{POD}.sock"
    assert len(names.service_socket_name(POD, 30)) <= 30


def test_registration_sockets_carry_the_pod_uid_or_its_hash() -> None:
    assert names.registration_socket_name(DRIVER, None, 80) == "gpu.example.com-reg.sock"
    assert names.registration_socket_name(DRIVER, POD, 80) == f"gpu.example.com-{POD}-reg.sock"
    hashed = names.registration_socket_name(DRIVER, POD, 40)
    assert len(hashed) <= 40
    for name in (hashed, f"gpu.example.com-{POD}-reg.sock", "gpu.example.com-reg.sock"):
        assert names.is_registration_socket(DRIVER, name)
    for name in ("gpu.example.com2-reg.sock", "x-reg.sock", "gpu.example.com-x-reg.sock"):
        assert not names.is_registration_socket(DRIVER, name)


def test_slice_names_sort_by_index_and_fit() -> None:
    pool = PoolName("rack/" + "p" * 200)
    found = [names.slice_name(i, "n" * 253, DRIVER, pool) for i in (0, 1, 9, 10, 16, 255, 4096)]
    assert found == sorted(found)
    assert [names.slice_index(name) for name in found] == [0, 1, 9, 10, 16, 255, 4096]
    for name in found:
        names.check_dns_subdomain("slice name", name)


def test_slice_names_differ_by_pool_and_attempt() -> None:
    one = names.slice_name(0, "n", DRIVER, PoolName("a"))
    assert one == names.slice_name(0, "n", DRIVER, PoolName("a"))
    assert one != names.slice_name(0, "n", DRIVER, PoolName("b"))
    assert one != names.slice_name(0, "n", DRIVER, PoolName("a"), attempt=1)
    assert names.slice_index("node-1-x") is None
