"""``python -m dra_fabric``: the fabric manager."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence

from dra_fabric.model import Fabric
from dra_fabric.server import Server, Service


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal says stop; the exit status."""
    parser = argparse.ArgumentParser(
        prog="dra-fabric", description="A simulated fabric manager. State is kept in memory only."
    )
    parser.add_argument("--listen", default="127.0.0.1:8600", metavar="HOST:PORT")
    parser.add_argument("--devices", type=int, default=8, help="number of devices, fab-0 …")
    parser.add_argument("--slots", type=int, default=16, help="devices that fit on one node")
    parser.add_argument("--latency", type=float, default=1.0, help="seconds to attach and detach")
    given = parser.parse_args(arguments)
    host, _, port = given.listen.rpartition(":")
    if not host or not port.isdecimal():
        parser.error(f"--listen {given.listen}: must be HOST:PORT")
    server = Server((host, int(port)), Service(Fabric(given.devices, given.slots, given.latency)))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    bound_host, bound_port = server.server_address[:2]
    sys.stdout.write(f"listening on {bound_host!s}:{bound_port}\n")
    sys.stdout.flush()
    stop.wait()
    server.shutdown()
    server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
