"""Checks of what somebody may do. The functions are declared, but there is nobody to ask about: no
variable of these types exists for a device. So a call compiles where the type of its target is not
known, and never finds one that fits.
"""

from __future__ import annotations

from typing import Final

from dra_core.cel.celtypes import BOOL, STRING, Type, struct
from dra_core.cel.faults import no_such_overload
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Value

_AUTHORIZER: Final = struct("kubernetes.authorization.Authorizer")
_PATH: Final = struct("kubernetes.authorization.PathCheck")
_GROUP: Final = struct("kubernetes.authorization.GroupCheck")
_RESOURCE: Final = struct("kubernetes.authorization.ResourceCheck")
_DECISION: Final = struct("kubernetes.authorization.Decision")

#: The types of the library.
TYPES: Final = (_AUTHORIZER, _PATH, _GROUP, _RESOURCE, _DECISION)


def _never(*_: Value) -> Value:
    raise no_such_overload()


def _overload(identifier: str, function: str, params: tuple[Type, ...], result: Type) -> Overload:
    return Overload(identifier, function, params, result, _never, member=True)


OVERLOADS: Final[tuple[Overload, ...]] = (
    _overload("authorizer_path", "path", (_AUTHORIZER, STRING), _PATH),
    _overload("authorizer_group", "group", (_AUTHORIZER, STRING), _GROUP),
    _overload(
        "authorizer_serviceaccount", "serviceAccount", (_AUTHORIZER, STRING, STRING), _AUTHORIZER
    ),
    _overload("groupcheck_resource", "resource", (_GROUP, STRING), _RESOURCE),
    _overload("resourcecheck_subresource", "subresource", (_RESOURCE, STRING), _RESOURCE),
    _overload("resourcecheck_namespace", "namespace", (_RESOURCE, STRING), _RESOURCE),
    _overload("resourcecheck_name", "name", (_RESOURCE, STRING), _RESOURCE),
    _overload("pathcheck_check", "check", (_PATH, STRING), _DECISION),
    _overload("resourcecheck_check", "check", (_RESOURCE, STRING), _DECISION),
    _overload("decision_errored", "errored", (_DECISION,), BOOL),
    _overload("decision_error", "error", (_DECISION,), STRING),
    _overload("decision_allowed", "allowed", (_DECISION,), BOOL),
    _overload("decision_reason", "reason", (_DECISION,), STRING),
    _overload("authorizer_fieldselector", "fieldSelector", (_RESOURCE, STRING), _RESOURCE),
    _overload("authorizer_labelselector", "labelSelector", (_RESOURCE, STRING), _RESOURCE),
)
