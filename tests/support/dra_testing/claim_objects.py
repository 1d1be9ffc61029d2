"""Random claims, claim templates, device classes and device taint rules: valid ones.

:class:`Maker` draws from one ``random.Random``, so that a seed and a number make an object again.
What is one change away from them is made in :mod:`dra_testing.claim_mutations`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, TypeVar

JSON = dict[str, Any]
T = TypeVar("T")

DRIVERS: Final = ["gpu.example.com", "net.example.com", "GPU.Example.com", "d" * 63]
CLASSES: Final = ["gpu", "gpu.example.com", "c" * 253]
SELECTORS: Final = [
    "true",
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "a100"',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("1Gi")) >= 0',
]
QUANTITIES: Final = ["1", "1024Mi", "1500m", "2e3", "0", "80Gi", 4]
ATTRIBUTES: Final = ["example.com/numa", "gpu.example.com/model", "resource.kubernetes.io/pcieRoot"]
UUIDS: Final = ["0a1b2c3d-0000-4000-8000-00000000000" + digit for digit in "123"]
TIMES: Final = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.6+01:00"]
KEYS: Final = ["example.com/broken", "maintenance", "k" * 63]
ADMIN_NAMESPACE: Final = "admins"


class Maker:
    """Makes valid objects."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def maybe(self, chance: float = 0.5) -> bool:
        return self.rng.random() < chance

    def some(self, make: Callable[[], T], most: int = 3, least: int = 0) -> list[T]:
        return [make() for _ in range(self.rng.randint(least, most))]

    def metadata(self, name: str) -> JSON:
        made: JSON = {"name": name}
        if self.maybe(0.2):
            made["labels"] = {"example.com/team": "a"}
        if self.maybe(0.2):
            made["annotations"] = {"Example.com/Note": "b c"}
        if self.maybe(0.1):
            made["finalizers"] = ["example.com/keep"]
        return made

    def toleration(self) -> JSON:
        made: JSON = {}
        exists = self.maybe()
        if self.maybe(0.8):
            made["key"] = self.rng.choice(KEYS)
        if exists or self.maybe(0.3):
            made["operator"] = "Exists" if exists else "Equal"
        if not exists and self.maybe():
            made["value"] = "yes"
        if self.maybe():
            made["effect"] = self.rng.choice(["NoSchedule", "NoExecute", "None"])
        if self.maybe(0.3):
            made["tolerationSeconds"] = self.rng.choice([0, 30, -1])
        return made

    def selector(self) -> JSON:
        return {"cel": {"expression": self.rng.choice(SELECTORS)}}

    def opaque(self) -> JSON:
        parameters = self.rng.choice([{}, {"b": [1, 2.5, None], "a": {"z": "ü"}}, {"k": "v"}])
        return {"opaque": {"driver": self.rng.choice(DRIVERS), "parameters": parameters}}

    def asked(self, *, admin: bool = False) -> JSON:
        made: JSON = {"deviceClassName": self.rng.choice(CLASSES)}
        mode = self.rng.choice(["", "ExactCount", "All"])
        if mode:
            made["allocationMode"] = mode
        if mode != "All" and self.maybe():
            made["count"] = self.rng.choice([1, 2, 8])
        for name, make in (("selectors", self.selector), ("tolerations", self.toleration)):
            if self.maybe(0.4):
                made[name] = self.some(make, 2)
        if self.maybe(0.4):
            made["capacity"] = {}
            if self.maybe(0.8):
                made["capacity"]["requests"] = {"memory": self.rng.choice(QUANTITIES)}
        if admin and self.maybe(0.15):
            made["adminAccess"] = self.maybe(0.8)
        return made

    def request(self, name: str) -> JSON:
        if self.maybe(0.6):
            return {"name": name, "exactly": self.asked(admin=True)}
        subs = [{"name": f"s{n}", **self.asked()} for n in range(self.rng.randint(1, 3))]
        return {"name": name, "firstAvailable": subs}

    def devices(self) -> JSON:
        requests = [self.request(f"r{n}") for n in range(self.rng.randint(0, 3))]
        made: JSON = {"requests": requests}
        constraints = self.some(lambda: self.constraint(requests), 2)
        if constraints:
            made["constraints"] = constraints
            self._derive(requests, constraints)
        if self.maybe():
            made["config"] = self.some(lambda: self._for(requests) | self.opaque(), 2)
        return made

    def constraint(self, requests: list[JSON]) -> JSON:
        kind = "matchAttribute" if self.maybe(0.7) else "distinctAttribute"
        return {**self._for(requests), kind: self.rng.choice(ATTRIBUTES)}

    def _for(self, requests: list[JSON]) -> JSON:
        known = names_of(requests)
        chosen = self.rng.sample(known, self.rng.randint(0, min(2, len(known))))
        return {"requests": chosen} if chosen else {}

    def _derive(self, requests: list[JSON], constraints: list[JSON]) -> None:
        for constraint in constraints:
            attribute = constraint.get("matchAttribute") or constraint["distinctAttribute"]
            targets = constraint.get("requests") or [r["name"] for r in requests]
            for request in requests:
                if request["name"] in targets and "exactly" in request and self.maybe(0.5):
                    request["exactly"]["derivedAttributes"] = [self.derived(attribute)]
                for sub in request.get("firstAvailable", []):
                    if f"{request['name']}/{sub['name']}" in targets or (
                        request["name"] in targets and self.maybe(0.5)
                    ):
                        sub["derivedAttributes"] = [self.derived(attribute)]

    def derived(self, name: str) -> JSON:
        return {"name": name, "expression": self.rng.choice(['"a"', "1", "device.driver"])}

    def claim(self) -> JSON:
        metadata = self.metadata("claim")
        metadata["namespace"] = ADMIN_NAMESPACE if self.maybe() else "default"
        return _object("ResourceClaim", metadata, {"devices": self.devices()})

    def template(self) -> JSON:
        spec: JSON = {"spec": {"devices": self.devices()}}
        if self.maybe():
            spec["metadata"] = {"labels": {"a": "b"}, "annotations": {"C": "d"}}
        metadata = self.metadata("template")
        metadata["namespace"] = ADMIN_NAMESPACE if self.maybe() else "default"
        return _object("ResourceClaimTemplate", metadata, spec)

    def device_class(self) -> JSON:
        spec: JSON = {}
        if self.maybe():
            spec["selectors"] = self.some(self.selector)
        if self.maybe():
            spec["config"] = self.some(self.opaque)
        if self.maybe(0.4):
            spec["extendedResourceName"] = self.rng.choice(["example.com/gpu", "a.b/C_d"])
        return _object("DeviceClass", self.metadata("class"), spec)

    def rule(self) -> JSON:
        spec: JSON = {"taint": {"key": self.rng.choice(KEYS), "effect": "NoExecute"}}
        taint = spec["taint"]
        if self.maybe():
            taint["value"] = "yes"
        taint["effect"] = self.rng.choice(["NoExecute", "NoSchedule", "None"])
        if self.maybe():
            taint["timeAdded"] = self.rng.choice(TIMES)
        if self.maybe(0.8):
            picks = {"driver": "GPU.example.com", "pool": "a/b.c", "device": "gpu-0"}
            spec["deviceSelector"] = {n: v for n, v in picks.items() if self.maybe()}
        return _object("DeviceTaintRule", self.metadata("rule"), spec)

    def condition(self, kind: str) -> JSON:
        made: JSON = {
            "type": kind,
            "status": self.rng.choice(["True", "False", "Unknown"]),
            "lastTransitionTime": self.rng.choice(TIMES),
            "reason": self.rng.choice(["Ready", "A_b:c,D"]),
            "message": self.rng.choice(["", "words"]),
        }
        if self.maybe(0.3):
            made["observedGeneration"] = 3
        return made

    def conditions(self) -> list[JSON]:
        return [self.condition(f"example.com/t{n}") for n in range(self.rng.randint(0, 3))]

    def result(self, request: str, number: int) -> JSON:
        made: JSON = {
            "request": request,
            "driver": self.rng.choice(DRIVERS),
            "pool": "node-1/gpus",
            "device": f"gpu-{number}",
        }
        if self.maybe(0.3):
            made["tolerations"] = self.some(self.toleration, 2)
        if self.maybe(0.3):
            made["bindingConditions"] = ["example.com/ready", "Attached"][: self.rng.randint(1, 2)]
            made["bindingFailureConditions"] = ["example.com/broken"]
        if self.maybe(0.3):
            made["shareID"] = self.rng.choice(UUIDS)
            made["consumedCapacity"] = {"memory": self.rng.choice(QUANTITIES)}
        if self.maybe(0.3):
            choices = [["*"], ["NodePrepareResources", "NodeUnprepareResources"], ["*"]]
            made["skipNodeOperations"] = self.rng.choice(choices)
        if self.maybe(0.1):
            made["adminAccess"] = self.maybe()
        return made

    def node_selector(self) -> JSON:
        requirements = [
            {"key": "zone", "operator": "In", "values": ["a", "b"]},
            {"key": "example.com/gpu", "operator": "Exists"},
            {"key": "cores", "operator": "Gt", "values": ["4"]},
        ]
        field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
        term: JSON = {"matchExpressions": self.rng.sample(requirements, self.rng.randint(0, 3))}
        if self.maybe():
            term["matchFields"] = [field]
        return {"nodeSelectorTerms": [term]}

    def allocation(self, claim: JSON) -> JSON:
        known = names_of(claim["spec"]["devices"]["requests"])
        devices: JSON = {"results": [self.result(name, n) for n, name in enumerate(known[:4])]}
        if self.maybe():
            source = self.rng.choice(["FromClaim", "FromClass"])
            target = self._for(claim["spec"]["devices"]["requests"])
            devices["config"] = self.some(lambda: {"source": source, **target, **self.opaque()}, 2)
        made: JSON = {"devices": devices}
        if self.maybe():
            made["nodeSelector"] = self.node_selector()
        if self.maybe():
            made["allocationTimestamp"] = self.rng.choice(TIMES)
        return made

    def device_status(self, result: JSON) -> JSON:
        keys = ("driver", "pool", "device", "shareID")
        made: JSON = {k: result[k] for k in keys if k in result}
        made["conditions"] = self.conditions()
        if self.maybe():
            made["data"] = {"x": 1}
        if self.maybe():
            made["networkData"] = {
                "interfaceName": "eth0",
                "ips": ["10.9.8.7/24", "2001:db8::1/64"][: self.rng.randint(0, 2)],
                "hardwareAddress": "00:11:22:33:44:55",
            }
        return made

    def consumer(self, number: int) -> JSON:
        """Not a pod: a controller would at once remove pods that are not there."""
        made: JSON = {"resource": "jobs", "name": f"j{number}", "uid": f"uid-{number}"}
        if self.maybe():
            made["apiGroup"] = "batch"
        return made

    def status(self, claim: JSON) -> JSON:
        """The status of an allocated claim, in use, with reports from drivers."""
        made: JSON = {"allocation": self.allocation(claim)}
        if self.maybe(0.7):
            made["reservedFor"] = [self.consumer(n) for n in range(self.rng.randint(0, 3))]
        if self.maybe(0.7):
            results = made["allocation"]["devices"]["results"]
            made["devices"] = [self.device_status(r) for r in results]
        return made


def names_of(requests: list[JSON]) -> list[str]:
    """What constraints may name: requests and subrequests."""
    subs = [f"{r['name']}/{s['name']}" for r in requests for s in r.get("firstAvailable", [])]
    return [r["name"] for r in requests] + subs


def _object(kind: str, metadata: JSON, spec: JSON) -> JSON:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }
