"""One connection: login, the conversation, and the dump it may end in."""

from __future__ import annotations

import logging
import secrets
import string
from typing import TYPE_CHECKING

import trio

from ibbmaster.dump.dialog import Dialog, Kill
from ibbmaster.dump.error import DumpError
from ibbmaster.dump.request import dump_request
from ibbmaster.dump.session import DumpSession
from ibbmaster.dump.start import check_start
from ibbmaster.errors import IbbMasterError, PositionPurgedError
from ibbmaster.server.dumping import Producer, run_dump
from ibbmaster.server.facts import PrimaryFacts
from ibbmaster.server.registry import Session
from ibbmaster.wire import command as commands
from ibbmaster.wire.connection import ServerConnection

if TYPE_CHECKING:
    from ibbmaster.server.primary import Primary

log = logging.getLogger(__name__)

RECEIVE_SIZE = 16 * 1024
LOGIN_TIMEOUT_S = 10.0  # MariaDB's connect_timeout, for the whole login
IDLE_TIMEOUT_S = 28800.0  # MariaDB's wait_timeout
SEED_ALPHABET = (string.ascii_letters + string.digits).encode()
