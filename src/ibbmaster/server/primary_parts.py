"""What all connections of a primary share."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from ibbmaster.dialogue.known_answers import KnownAnswers
from ibbmaster.server.dump_opening import DumpOpening
from ibbmaster.server.dumping import LogEnd
from ibbmaster.server.facts import PrimaryFacts
from ibbmaster.server.login_guard import LoginGuard
from ibbmaster.server.memory import SharedMemory
from ibbmaster.server.options import PrimaryOptions
from ibbmaster.server.preparation import LookAhead, Preparation
from ibbmaster.server.reactor import Reactor
from ibbmaster.server.registry import Registry
from ibbmaster.server.working import Workers
from ibbmaster.streaming.shared import SharedBlocks


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryParts:
    """The parts of a primary that all its connections share."""

    options: PrimaryOptions
    registry: Registry
    reactor: Reactor
    log_end: LogEnd
    facts: PrimaryFacts
    opening: DumpOpening
    shared_blocks: SharedBlocks
    look_ahead: LookAhead
    pumps: trio.CapacityLimiter
    workers: Workers
    memory: SharedMemory
    known_answers: KnownAnswers
    guard: LoginGuard
    preparation: Preparation
