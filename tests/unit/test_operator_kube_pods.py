"""kube_objects: what the API server's refusals of an Eviction mean."""

from __future__ import annotations

from typing import Any

import pytest

from dra_core.errors import (
    ApiBusy,
    ApiConflict,
    ApiError,
    ApiForbidden,
    ApiNotFound,
    ApiUnavailable,
)
from dra_core.model.usage import Pod
from dra_core.names import PodUID
from dra_operator.adapters.kube_objects import KubePods
from dra_operator.ports import EvictionRefused


class Api:
    """An API server that always says the same."""

    def __init__(self, error: ApiError) -> None:
        self.error = error
        self.asked: list[tuple[str, str]] = []

    def request(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        self.asked.append((method, path))
        raise self.error


CHANGED = "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record"
REPLACED = "the UID in the precondition (u) does not match the UID in record (v)"
GOING = "unable to create new content in namespace ns because it is being terminated"


@pytest.mark.parametrize(
    ("error", "means"),
    [
        (ApiBusy("POST x: 429: a budget", 10.0), EvictionRefused),
        (ApiUnavailable("POST x: no answer"), ApiUnavailable),
        (ApiConflict(f"POST x: 409: {REPLACED}"), ApiConflict),
        (ApiConflict(f"POST x: 409: {CHANGED}"), ApiUnavailable),
        (ApiForbidden(f"POST x: 403: {GOING}"), ApiConflict),
        (ApiForbidden("POST x: 403: not you"), ApiForbidden),
        (ApiNotFound("POST x: 404: no such pod"), ApiNotFound),
    ],
)
def test_what_a_refused_eviction_means(error: ApiError, means: type[ApiError]) -> None:
    api = Api(error)
    with pytest.raises(ApiError) as raised:
        KubePods(api).evict(Pod("ns", "p", PodUID("u")))  # type: ignore[arg-type]
    assert type(raised.value) is means
    assert api.asked == [("POST", "/api/v1/namespaces/ns/pods/p/eviction")]
