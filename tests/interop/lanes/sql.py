"""What real servers are given to do: statements, also of a .sql file beside a module, and scripts; and their logs."""

import contextlib
import re
import shutil
import subprocess
from pathlib import Path

import pymysql

from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.testkit.mariadb_server import RealServer

TIMEOUT_S = 600  # ends what hangs; a machine may be busy
OF_SERVERS = ("mysql", "information_schema", "performance_schema", "sys", "test")


def sql_beside(module: str) -> dict[str, tuple[str, ...]]:
    """The sections of the .sql file of a module, given as `__file__`: a line `-- [name]` begins one, and `;;` with
    a new line ends a statement."""
    _, *parts = re.split(r"^-- \[(.+)\]\n", Path(module).with_suffix(".sql").read_text(), flags=re.MULTILINE)
    texts = zip(parts[::2], parts[1::2], strict=True)
    return {name: tuple(text.removesuffix(";;\n").split(";;\n")) for name, text in texts}


def run(server: RealServer, *statements: str, may_fail: bool = False) -> None:
    """Run statements in one session; with `may_fail` the server may refuse some."""
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            with contextlib.suppress(pymysql.Error) if may_fail else contextlib.nullcontext():
                cursor.execute(statement)


def drop_databases(server: RealServer) -> None:
    """Drop all but those of every server."""
    for (name,) in server.sql("SHOW DATABASES"):
        if name not in OF_SERVERS:
            server.sql(f"DROP DATABASE {quoted_name(name)}")


def position_of(server: RealServer) -> str:
    """The GTID position of its binlog."""
    return str(server.sql("SELECT @@GLOBAL.gtid_binlog_pos")[0][0])


def take_over(replica: RealServer, primary: RealServer) -> None:
    """The primary dies once its replica has everything, which takes its place."""
    assert replica.sql("SELECT MASTER_GTID_WAIT(%s, 60)", (position_of(primary),)) == ((0,),)
    primary.kill()
    replica.sql("STOP SLAVE")


def copy_binlogs(server: RealServer, target: Path, copied: set[str] | None = None) -> Path:
    """Copy what it has logged into a directory; of what was copied before, as `copied` knows, only what came since."""
    server.sql("FLUSH BINARY LOGS")
    target.mkdir(parents=True, exist_ok=True)
    known = set[str]() if copied is None else copied
    for name in [row[0] for row in server.sql("SHOW BINARY LOGS")][:-1]:
        if name not in known:
            shutil.copy(server.data / name, target / name)
            known.add(name)
    return target


def run_script(server: RealServer, script: bytes, *options: str) -> str:
    """What the server's own client says of a script; nothing if it runs to its end."""
    client = [*server.programs.command("mariadb"), "--no-defaults", "--skip-ssl", "--binary-mode", *options]
    client += [f"--socket={server.socket}", "--user=root"]
    done = subprocess.run(client, input=script, capture_output=True, timeout=TIMEOUT_S, check=False)
    return done.stderr.decode("utf-8", "replace")


def dump_of(server: RealServer, *options: str) -> bytes:
    """What mariadb-dump writes of some databases, with the position that it is of."""
    command = [*server.programs.command("mariadb-dump"), "--no-defaults", "--skip-ssl", f"--socket={server.socket}"]
    command += ["--user=root", "--master-data", "--gtid", "--single-transaction", *options]
    return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True).stdout
