"""What users have asked an API server for, from its audit log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Audit:
    """Of some users, written into a folder, which is there before the API server starts."""

    folder: Path
    users: Sequence[str]

    @property
    def _log(self) -> Path:
        return self.folder / "audit.log"

    def flags(self) -> tuple[str, ...]:
        """Of the API server; writes the policy that they name."""
        rule = {"level": "Metadata", "users": list(self.users)}
        content = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [rule, {"level": "None"}],
        }
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps(content))
        return f"--audit-policy-file={policy}", f"--audit-log-path={self._log}"

    def position(self) -> int:
        """Where the log ends now."""
        return self._log.stat().st_size if self._log.exists() else 0

    def events(self, user: str, since: int = 0) -> list[dict[str, Any]]:
        """All audit events of one of the users after a position."""
        with self._log.open() as file:
            file.seek(since)
            found = [json.loads(line) for line in file]
        return [event for event in found if event["user"]["username"] == user]

    def asked(self, user: str, since: int = 0) -> Counter[str]:
        """Requests but for watches, as "get pods" or "create pods/eviction"."""
        return Counter(
            kind(event) for event in self.events(user, since) if event["verb"] != "watch"
        )


def kind(event: dict[str, Any]) -> str:
    """Verb and resource of an audit event."""
    what = event.get("objectRef") or {}
    parts = (what.get("resource", ""), what.get("subresource", ""))
    return f"{event['verb']} {'/'.join(filter(None, parts))}"
