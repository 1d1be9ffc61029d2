"""What the operator counts and measures, see ``/metrics``."""

from __future__ import annotations

from typing import Final

from dra_service.metrics import Registry

_PREFIX: Final = "dra_operator_"
_NUMBERS: Final = {
    "attempts_total": "Attempts to evict a pod, by result.",
    "cancelled_total": "Pods that were to go and stay after all.",
    "observed_total": "Pods that would have been evicted, in mode observe.",
    "pods_gone_total": "Evicted pods that are gone.",
    "pods_without_driver": "Pods that do not start, and whose devices nobody publishes.",
    "spared_total": "Pods with a tainted device that stay, by what was said of them.",
    "held_total": "Times that a rule was held back because it concerns too many pods.",
    "claims_deallocated_total": "Claims of evicted pods that have become free.",
    "claims_to_deallocate": "Claims of evicted pods that are still allocated.",
    "rule_conditions_total": "Conditions written on rules.",
    "probes_total": "Rules that asked whether the in-tree evictor works, by result.",
    "mode": "Whether a mode is in force, by mode.",
    "pods": "Pods that are to go, by state.",
    "attached_total": "Devices attached or given up, by driver and result.",
    "attach_seconds_total": "Seconds from the first attempt to attached, by driver.",
    "attachments": "Devices of claims, by driver and state.",
    "oldest_waiting_seconds": "Seconds since the allocation that waits longest, by driver.",
    "detached_total": "Devices detached, by driver.",
    "condition_writes_total": "Writes of conditions into claims, by outcome and result.",
    "fabric_lists_total": "Times a fabric was asked what is attached, by driver and result.",
    "holds": "Devices held back after a failure.",
    "holds_total": "Times a device was to be held back, by result.",
    "leading": "Whether this instance is the one that may evict.",
    "objects": "Objects in memory, by resource.",
    "watch_up": "Whether a resource is being watched, by resource.",
    "watch_starts_total": "Times the watches were started.",
    "unreadable": "Whether a resource may not be read, by resource.",
    "compared_total": "Comparisons with the API server, by result.",
    "strays_total": "Objects forgotten by a comparison, by resource.",
}


def registry() -> Registry:
    """See :class:`dra_operator.ports.Measures`."""
    return Registry(_PREFIX, _NUMBERS)
