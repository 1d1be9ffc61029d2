"""Numbers at /metrics, in the text format of Prometheus."""

from __future__ import annotations

import pytest

from dra_driver.adapters import metrics


def test_counters_and_gauges_with_labels() -> None:
    registry = metrics.registry()
    registry.add("writes_total", verb="create")
    registry.add("writes_total", verb="create")
    registry.add("writes_total", verb="update")
    registry.set("pool_devices", 3, pool='a"b\\c\n')
    registry.set("features_missing", 0.5)
    assert registry.text() == (
        "# HELP dra_driver_publisher_writes_total Requests that write ResourceSlices, by verb.\n"
        "# TYPE dra_driver_publisher_writes_total counter\n"
        'dra_driver_publisher_writes_total{verb="create"} 2\n'
        'dra_driver_publisher_writes_total{verb="update"} 1\n'
        "# HELP dra_driver_publisher_pool_devices Devices published of a pool.\n"
        "# TYPE dra_driver_publisher_pool_devices gauge\n"
        'dra_driver_publisher_pool_devices{pool="a\\"b\\\\c\\n"} 3\n'
        "# HELP dra_driver_publisher_features_missing Features that the pools use and the cluster "
        "does not have.\n"
        "# TYPE dra_driver_publisher_features_missing gauge\n"
        "dra_driver_publisher_features_missing 0.5\n"
    )


def test_a_number_that_nobody_described_is_a_bug() -> None:
    with pytest.raises(KeyError):
        metrics.registry().add("surprises_total")
