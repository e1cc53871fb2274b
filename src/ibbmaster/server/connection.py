"""One connection: login, the conversation, and the dump it may end in."""

from __future__ import annotations

import logging
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)

RECEIVE_SIZE = 16 * 1024
LOGIN_TIMEOUT_S = 10.0  # MariaDB's connect_timeout, for the whole login
IDLE_TIMEOUT_S = 28800.0  # MariaDB's wait_timeout
SEED_ALPHABET = (string.ascii_letters + string.digits).encode()
