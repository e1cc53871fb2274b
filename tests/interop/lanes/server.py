"""A private MariaDB server: own data directory, own socket, no configuration file, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import Any, BinaryIO

import pymysql

from lanes.programs import Lane

READY = b"ready for connections."
START_TIMEOUT_S = 600.0  # ends what hangs; a machine may be busy
STOP_TIMEOUT_S = 120.0
LOG_LINES_MAX = 400  # the last lines of a server's log that are kept for a failure

SMALL = (  # a server that starts fast and lives for one test: nothing on its disk must survive the machine
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=64M",
    "--innodb-undo-tablespaces=0",
    "--innodb-data-file-path=ibdata1:8M:autoextend",
    "--innodb-autoextend-increment=1",
    "--innodb-use-native-aio=OFF",
    "--innodb-doublewrite=OFF",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--performance-schema=OFF",
    "--max-allowed-packet=1G",  # rows of 17 MiB, in hexadecimal
    "--skip-log-bin",
)

Row = tuple[Any, ...]


class ServerError(Exception):
    """A real server did not do what a test needs of it; the text ends with its log."""


class Template:
    """A freshly initialised data directory, made once for a lane and copied for each server."""

    def __init__(self, lane: Lane, directory: Path) -> None:
        self.lane = lane
        self.data = directory / "data"
        self.plugins = directory / "plugins"
        self.plugins.mkdir(parents=True)
        for plugin in lane.plugins():
            with contextlib.suppress(FileExistsError):
                (self.plugins / plugin.name).symlink_to(plugin.resolve())
        self.data.mkdir()
        made = subprocess.run(
            [*self.server_command(self.data), "--bootstrap"],
            input=lane.system_tables_sql(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if made.returncode or "ERROR" in made.stderr:
            raise ServerError(f"bootstrap of MariaDB {lane.version} failed:\n{made.stderr[-4000:]}")

    def server_command(self, data: Path) -> list[str]:
        """How a server of this lane is started on a data directory."""
        return [
            *self.lane.command("mariadbd"),
            "--no-defaults",
            *(["--user=root"] if os.getuid() == 0 else []),
            f"--basedir={self.lane.root / 'usr'}",
            f"--lc-messages-dir={self.lane.share}",
            f"--character-sets-dir={self.lane.share / 'charsets'}",
            f"--plugin-dir={self.plugins}",
            f"--datadir={data}",
            *SMALL,
        ]


class Server:
    """One running MariaDB server; a context manager that ends it."""

    def __init__(self, template: Template, directory: Path, *options: str) -> None:
        self.lane = template.lane
        self.directory = directory
        self.data = directory / "data"
        self.socket = directory / "s"  # short: the path of a unix socket has 107 bytes at most
        self.log: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self.port: int | None = None
        self._template = template
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._connection: pymysql.Connection[Any] | None = None
        if not self.data.exists():
            shutil.copytree(template.data, self.data)

    @property
    def pid(self) -> int:
        """Of its process, while it runs."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        """Start and wait until it takes connections.

        Raises:
            ServerError: it ended instead, or took too long.
        """
        (self.directory / "tmp").mkdir(exist_ok=True)
        command = [
            *self._template.server_command(self.data),
            f"--socket={self.socket}",
            f"--tmpdir={self.directory / 'tmp'}",
            *self._network_options(),
            *self._options,
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert self._process.stderr is not None
        is_ready = threading.Event()
        self._reader = threading.Thread(target=self._read_log, args=(self._process.stderr, is_ready), daemon=True)
        self._reader.start()
        if not is_ready.wait(START_TIMEOUT_S) or self._process.poll() is not None:
            self.kill()
            self._reader.join(STOP_TIMEOUT_S)
            raise ServerError(f"MariaDB {self.lane.version} did not start:\n{self.log_text()}")

    def _network_options(self) -> list[str]:
        return ["--skip-networking"]

    def _read_log(self, pipe: BinaryIO, is_ready: threading.Event) -> None:
        with pipe:
            for line in pipe:
                self.log.append(line.decode(errors="replace").rstrip())
                if READY in line:
                    is_ready.set()
        is_ready.set()  # it ended; whoever waits finds no process

    def log_text(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log)

    def stop(self) -> None:
        """Shut down in order."""
        self._disconnect()
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_TIMEOUT_S)
            self._process = None

    def kill(self) -> None:
        """End at once, as a crash would."""
        self._disconnect()
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT_S)
            self._process = None

    def sql(self, statement: str, arguments: tuple[object, ...] | None = None) -> tuple[Row, ...]:
        """Run one statement as root and hand over its rows."""
        if self._connection is None:
            self._connection = self.connect()
        with self._connection.cursor() as cursor:
            cursor.execute(statement, arguments)
            return tuple(cursor.fetchall())

    def connect(self) -> pymysql.Connection[Any]:
        """A new connection as root; a statement on it may take long."""
        return pymysql.connect(unix_socket=str(self.socket), user="root", autocommit=True, charset="utf8mb4")

    def query(self, statement: str) -> list[dict[str, Any]]:
        """Run one statement; rows as dictionaries by column name."""
        if self._connection is None:
            self._connection = self.connect()
        with self._connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(pymysql.Error):
                self._connection.close()
            self._connection = None


class NetworkServer(Server):
    """A server that also listens on 127.0.0.1 at a free port."""

    def _network_options(self) -> list[str]:
        self.port = self.port or free_port()
        return ["--bind-address=127.0.0.1", f"--port={self.port}"]


def free_port() -> int:
    """A port nobody listens on at the moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
