"""Lists are read in pages; one that ages in between (410) is read again in one piece."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from dra_core.errors import ApiExpired
from dra_driver.adapters.kube import KubeApi
from dra_testing.places import kubeconfig


class _Pages(http.server.BaseHTTPRequestHandler):
    """Three pages of one item; ``expired`` are the tokens that the server has forgotten."""

    expired: ClassVar[set[str]] = set()
    asked: ClassVar[list[dict[str, list[str]]]] = []

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self.asked.append(query)
        token = query.get("continue", [""])[0]
        if token in self.expired:
            self._answer(410, {"kind": "Status", "code": 410, "message": "too old"})
        elif "limit" not in query:
            items = [{"n": n} for n in range(3)]
            self._answer(200, {"items": items, "metadata": {"resourceVersion": "9"}})
        else:
            at = int(token or 0)
            following = {"continue": str(at + 1)} if at < 2 else {}
            metadata = {"resourceVersion": "7", **following}
            self._answer(200, {"items": [{"n": at}], "metadata": metadata})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[KubeApi, type[_Pages]]]:
    handler = type("_Own", (_Pages,), {"expired": set(), "asked": []})
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{made.server_address[1]}"
    yield KubeApi.connect(kubeconfig(tmp_path / "kubeconfig", url)), handler
    made.shutdown()
    thread.join()
    made.server_close()


def test_all_pages_are_read(server: tuple[KubeApi, type[_Pages]]) -> None:
    api, pages = server
    listed = api.list_all("/x", {"fieldSelector": "a=b"})
    assert listed.items == ({"n": 0}, {"n": 1}, {"n": 2})
    assert listed.resource_version == "7"
    assert [q["limit"] for q in pages.asked] == [["500"]] * 3
    assert {q["fieldSelector"][0] for q in pages.asked} == {"a=b"}


@pytest.mark.parametrize("token", ["1", "2"])
def test_a_list_that_ages_is_read_again_in_one_piece(
    server: tuple[KubeApi, type[_Pages]], token: str
) -> None:
    api, pages = server
    pages.expired.add(token)
    listed = api.list_all("/x", {})
    assert listed.items == ({"n": 0}, {"n": 1}, {"n": 2}), "no item twice"
    assert listed.resource_version == "9"
    assert "limit" not in pages.asked[-1]


def test_one_that_is_too_old_from_the_start_is_an_error(
    server: tuple[KubeApi, type[_Pages]],
) -> None:
    api, pages = server
    pages.expired.add("")
    with pytest.raises(ApiExpired):
        api.list_all("/x", {})
