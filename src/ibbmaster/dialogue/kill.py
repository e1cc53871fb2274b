"""The answer to KILL, which the session gives its driver to carry out."""

from __future__ import annotations

from dataclasses import dataclass, field

from ibbmaster.wire.response import Ok, Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The driver shall end another connection, or what it does; the client gets OK."""

    connection_id: int
    query_only: bool
    answer: Response = field(default_factory=Ok)
