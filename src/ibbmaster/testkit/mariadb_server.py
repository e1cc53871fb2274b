"""A private MariaDB server: own data directory and socket, no configuration file, gone afterwards. Needs the programs
of a MariaDB version (`mariadb_programs`), and PyMySQL to ask it anything."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from ibbmaster.errors import ConfigurationError
from ibbmaster.facts import rows_of
from ibbmaster.user_cache import make_directory, program_directory
from .mariadb_programs import ServerPrograms

if TYPE_CHECKING:
    import pymysql

USER = "repl"  # of a primary
PASSWORD = "a pass word"
READY = b"ready for connections."
START_TIMEOUT_S = 600.0  # a machine may be busy
STOP_TIMEOUT_S = 120.0
LOG_LINES_MAX = 400  # last lines of a server's log that are kept
SOCKET_PATH_MAX = 107  # bytes
BLOCK_SIZE = 4096  # of a file system
CONNECT_RETRY_S = 1  # of a replica
REPLICA_SERVER_ID = 1001

SMALL = tuple(option for option, _ in rows_of(__package__, "small_server"))

Row = tuple[Any, ...]


class RealServerError(ConfigurationError):
    """A real server failed; the text ends with its log."""


class ServerTemplate:
    """A new data directory of a version, for servers to copy."""

    def __init__(self, programs: ServerPrograms, directory: Path) -> None:
        """Raises RealServerError: it cannot be made."""
        self.programs = programs
        self.data = directory / "data"
        self.plugins = directory / "plugins"
        if not self.data.exists():
            self._make()

    @classmethod
    def of_user(cls, programs: ServerPrograms) -> Self:
        """The template in the user's cache, made when it is first needed. Raises ConfigurationError: others may write
        the cache, which holds plugins of the server; RealServerError: it cannot be made."""
        binary = Path(programs.command("mariadbd")[-1]).resolve().stat()
        facts = (str(programs.root.absolute()), programs.version, binary.st_size, binary.st_mtime_ns, SMALL)
        name = f"server-{programs.version}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}"
        return cls(programs, program_directory() / name)

    def _make(self) -> None:
        make_directory(self.data.parent.parent)
        made = Path(tempfile.mkdtemp(prefix=f"{self.data.parent.name}-", dir=self.data.parent.parent))
        try:
            self._fill(made)
            with contextlib.suppress(OSError):  # another process was faster
                made.rename(self.data.parent)
            if not self.data.exists():
                raise RealServerError(f"{self.data.parent} is there, and is not a template of a server: remove it")
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _fill(self, directory: Path) -> None:
        plugins, data = directory / "plugins", directory / "data"
        plugins.mkdir()
        for plugin in self.programs.plugins():
            with contextlib.suppress(FileExistsError):
                (plugins / plugin.name).symlink_to(plugin.resolve())
        data.mkdir()
        scratch = directory / "tmp"  # a killed one leaves its temporary tables
        scratch.mkdir()
        made = subprocess.run(
            [*self.server_command(data), f"--plugin-dir={plugins}", f"--tmpdir={scratch}", "--bootstrap"],
            input=self.programs.system_tables_sql(),
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
            check=False,
        )
        if made.returncode or "ERROR" in made.stderr:
            raise RealServerError(f"bootstrap of MariaDB {self.programs.version} failed:\n{made.stderr[-4000:]}")

    def server_command(self, data: Path) -> list[str]:
        return [
            *self.programs.command("mariadbd"),
            "--no-defaults",
            *(["--user=root"] if os.getuid() == 0 else []),
            f"--basedir={self.programs.root / 'usr'}",
            f"--lc-messages-dir={self.programs.share}",
            f"--character-sets-dir={self.programs.share / 'charsets'}",
            f"--plugin-dir={self.plugins}",
            f"--datadir={data}",
            *SMALL,
        ]


def _copy_without_zeros(source: str, target: str) -> None:
    """16 of the 19 MB of a new server are zeros."""
    with open(source, "rb") as data, open(target, "wb") as copy:
        while block := data.read(BLOCK_SIZE):
            if block.count(0) == len(block):
                copy.seek(len(block), os.SEEK_CUR)
            else:
                copy.write(block)
        copy.truncate()
    shutil.copymode(source, target)


class RealServer:
    def __init__(self, template: ServerTemplate, directory: Path, *options: str) -> None:
        self.programs = template.programs
        self.directory = directory
        self.data = directory / "data"
        self.socket = directory / "s"
        self._socket_directory: Path | None = None
        self.log: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self.port: int | None = None
        self._template = template
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._reader: threading.Thread | None = None
        self._connection: pymysql.Connection[Any] | None = None
        if not self.data.exists():
            copied = directory / "data.new"  # a killed copier leaves no half of a server
            shutil.rmtree(copied, ignore_errors=True)
            shutil.copytree(template.data, copied, copy_function=_copy_without_zeros)
            copied.rename(self.data)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:  # ^C, too, leaves no server behind
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        """Raises RealServerError: it ended instead, or took too long."""
        (self.directory / "tmp").mkdir(exist_ok=True)
        if len(os.fsencode(self.socket.absolute())) > SOCKET_PATH_MAX:
            self._socket_directory = Path(tempfile.mkdtemp(prefix="ibb-"))
            self.socket = self._socket_directory / "s"
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
        answered = threading.Event()
        self._is_ready = False
        self._reader = threading.Thread(target=self._read_log, args=(self._process.stderr, answered), daemon=True)
        self._reader.start()
        if not answered.wait(START_TIMEOUT_S) or not self._is_ready:
            self.kill()
            self._reader.join(STOP_TIMEOUT_S)
            raise RealServerError(f"MariaDB {self.programs.version} did not start:\n{self.log_text()}")

    def _network_options(self) -> list[str]:
        return ["--skip-networking"]

    def _read_log(self, pipe: BinaryIO, answered: threading.Event) -> None:
        with pipe:
            for line in pipe:
                self.log.append(line.decode(errors="replace").rstrip())
                if READY in line:
                    self._is_ready = True
                    answered.set()
        answered.set()  # it ended

    def log_text(self) -> str:
        return "\n".join(self.log)

    def stop(self) -> None:
        self._end(subprocess.Popen.terminate)

    def kill(self) -> None:
        self._end(subprocess.Popen.kill)

    def _end(self, by: Callable[[subprocess.Popen[bytes]], None]) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):  # the server may be gone
                self._connection.close()
            self._connection = None
        if self._process is None:
            return
        by(self._process)
        self._process.wait(STOP_TIMEOUT_S)
        self._process = None
        if self._socket_directory is not None:
            shutil.rmtree(self._socket_directory, ignore_errors=True)
            self._socket_directory, self.socket = None, self.directory / "s"

    def sql(self, statement: str, arguments: tuple[object, ...] | None = None) -> tuple[Row, ...]:
        if self._connection is None:
            self._connection = self.connect()
        with self._connection.cursor() as cursor:
            cursor.execute(statement, arguments)
            return tuple(cursor.fetchall())

    def connect(self) -> pymysql.Connection[Any]:
        import pymysql

        return pymysql.connect(unix_socket=str(self.socket), user="root", autocommit=True, charset="utf8mb4")

    def query(self, statement: str) -> list[dict[str, Any]]:
        """Run one statement as root; rows by column name."""
        if self._connection is None:
            self._connection = self.connect()
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def follow_at(
        self,
        host: str,
        port: int,
        *,
        user: str,
        password: str,
        ssl: bool | None = False,
        position: str = "",
        heartbeat_period_s: float | None = None,
        start: bool = True,
    ) -> None:
        """CHANGE MASTER and START SLAVE from a GTID position. `ssl` None leaves TLS to the version: unused before 11.4,
        demanded and verified since."""
        if position:
            self.sql("SET GLOBAL gtid_slave_pos = %s", (position,))
        words = [
            f"MASTER_HOST='{host}'",
            f"MASTER_PORT={port}",
            f"MASTER_USER='{user}'",
            f"MASTER_PASSWORD='{password}'",
            "MASTER_USE_GTID=slave_pos",
            f"MASTER_CONNECT_RETRY={CONNECT_RETRY_S}",
        ]
        if ssl is not None:
            words.append(f"MASTER_SSL={int(ssl)}")
        if ssl is False:
            words.append("MASTER_SSL_VERIFY_SERVER_CERT=0")
        if heartbeat_period_s is not None:
            words.append(f"MASTER_HEARTBEAT_PERIOD={heartbeat_period_s}")
        self.sql(f"CHANGE MASTER TO {', '.join(words)}")
        if start:
            self.sql("START SLAVE")

    def status(self) -> dict[str, object]:
        """SHOW SLAVE STATUS."""
        return self.query("SHOW SLAVE STATUS")[0]


class NetworkServer(RealServer):
    """A server that also listens on 127.0.0.1 at a free port."""

    def _network_options(self) -> list[str]:
        self.port = self.port or free_port()
        return ["--bind-address=127.0.0.1", f"--port={self.port}"]


class RealPrimary(NetworkServer):
    host = "127.0.0.1"
    user = USER
    password = PASSWORD
    port: int

    def __init__(self, template: ServerTemplate, directory: Path, files: Sequence[Path], *options: str) -> None:
        super().__init__(template, directory, "--server-id=1", "--log-bin=binlog", *options)
        for file in files:
            shutil.copyfile(file, self.data / file.name)
        (self.data / "binlog.index").write_text("".join(f"./{file.name}\n" for file in files))

    def start(self) -> None:
        is_new = not (self.directory / "account").exists()
        super().start()
        if is_new:  # the account must not become part of the binlog it serves
            self.sql("SET sql_log_bin = 0")
            self.sql(f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'")
            self.sql(f"GRANT ALL ON *.* TO {USER}")
            self.sql("SET sql_log_bin = 1")
            (self.directory / "account").touch()


class RealReplica(RealServer):
    def __init__(
        self, template: ServerTemplate, directory: Path, *options: str, server_id: int = REPLICA_SERVER_ID
    ) -> None:
        super().__init__(
            template, directory, f"--server-id={server_id}", "--skip-slave-start", "--relay-log=relay", *options
        )

    @property
    def position(self) -> set[str]:
        """Its GTID position, without an order of domains."""
        return set(str(self.sql("SELECT @@GLOBAL.gtid_slave_pos")[0][0]).split(",")) - {""}


def problem_of(status: dict[str, object], *, tolerates_lost_connections: bool) -> str | None:
    """The error that does not heal by itself."""
    if status["Last_SQL_Errno"]:
        return str(status["Last_SQL_Error"])
    has_given_up = status["Slave_IO_Running"] == "No"
    if status["Last_IO_Errno"] and (has_given_up or not tolerates_lost_connections):
        return str(status["Last_IO_Error"])
    return None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
