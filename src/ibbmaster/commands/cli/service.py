"""What a service says to systemd: it is ready, alive, or ending. Source: systemd, sd_notify(3)."""

import contextlib
import os
import socket

READY, ALIVE, STOPPING = "READY=1", "WATCHDOG=1", "STOPPING=1"


def notify(text: str) -> None:
    """Nothing happens outside of a unit of Type=notify."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place:
        return
    abstract = place.startswith("@")
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(text.encode(), "\0" + place[1:] if abstract else place)
