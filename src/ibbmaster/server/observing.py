"""Whom a connection asks at each of its steps, if it is to be watched, held up, cut or answered otherwise."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol

from ibbmaster.server.registry import Session
from ibbmaster.wire.command import AnyCommand
from ibbmaster.wire.response import Response


class ConnectionStep(enum.Enum):
    """What a connection is about to do, or has just done."""

    ACCEPTED = "is there; the greeting comes next"
    GREETED = "has the greeting, and has said nothing yet"
    TLS = "asks for TLS, which begins next"
    LOGGED_IN = "has given a right password; the OK comes next"
    ASKED = "has sent a command; its answer, or the preparation of its dump, comes next"
    ANSWERED = "has its answer"
    DUMPING = "gets its dump; the first event comes next"


class Observer(Protocol):
    """Who follows every connection of a primary, in its event loop; without one, connections pay nothing for it."""

    async def reached(
        self, step: ConnectionStep, session: Session, command: AnyCommand | None
    ) -> Sequence[Response] | None:
        """Let a connection continue by returning None, soon or late; `command` is that of the last three steps.

        At ACCEPTED, LOGGED_IN and ASKED, responses are sent instead of what would have come: an
        `Err`, after which the connection ends, or the whole answer to a command that is no dump.
        Raise `trio.BrokenResourceError` to cut the connection: by a reset where SO_LINGER of
        `session.socket` is on and zero. While this waits no limit of time of the login runs.
        """

    def left(self, session: Session) -> None:
        """The connection has ended, as `session.reason` says; its socket is still open."""
