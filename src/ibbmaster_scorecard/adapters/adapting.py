"""What adapters that this interpreter runs have in common; they may need PyMySQL."""

from __future__ import annotations

import json
import os
import ssl
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

LOCK = threading.Lock()


def tell(event: str, **given: object) -> None:
    with LOCK:
        print(json.dumps({"event": event, **given}), flush=True)


def ask(request: dict[str, Any], statement: str) -> str:
    """The first value that the primary of a request answers. Raises pymysql.Error or OSError: there is none."""
    import pymysql

    context = ssl.create_default_context() if request["tls"] else None
    if context is not None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    login = {name: request[name] for name in ("host", "port", "user", "password")}
    with (
        closing(pymysql.connect(**login, ssl=context, connect_timeout=5, read_timeout=5)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
        return str(cursor.fetchall()[0][0])


def run(main: Callable[[], int]) -> None:
    """Run a program to its end, though a thread may still wait at standard input."""
    code = main()
    sys.stdout.flush()
    os._exit(code)
