"""What the driver counts and measures, see ``/metrics``."""

from __future__ import annotations

from typing import Final

from dra_service.metrics import Registry

_PREFIX: Final = "dra_driver_publisher_"
_NUMBERS: Final = {
    "leading": "Whether this instance, without a node, is the one that publishes.",
    "writes_total": "Requests that write ResourceSlices, by verb.",
    "failures_total": "Attempts to publish that failed and were tried again.",
    "discoveries_total": "Times the driver was asked for its devices, by result.",
    "pool_devices": "Devices published of a pool.",
    "pool_generation": "Generation of a pool.",
    "devices_left_out": "Devices of a pool that the API refuses (by=rules, by=server).",
    "devices_withheld": "Devices of a pool withheld because the cluster lacks a feature.",
    "features_missing": "Features that the pools use and the cluster does not have.",
}


def registry() -> Registry:
    """See :class:`dra_driver.ports.Measures`."""
    return Registry(_PREFIX, _NUMBERS)
