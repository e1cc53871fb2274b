"""`mariadb-binlog --stop-never` of the newest version here, with the options that tell a user most."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import IO, Any

import pymysql
from printed import PrintedReader

from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.testkit.mariadb_programs import ProgramsMissingError, find_programs, installed_versions
from ibbmaster_scorecard.adapters.adapting import ask, run, tell

BEGINNING = "4294967295-1-1"  # after a GTID of a domain that no server has: everything; '' would ask by file
FIXED_OPTIONS = (
    *("--no-defaults", "--read-from-remote-server", "--stop-never", "-vv"),
    *("--base64-output=decode-rows", "--print-table-metadata", "--verify-binlog-checksum"),
)


def main() -> int:
    try:
        command = find_programs((installed_versions() or ["11.8"])[-1]).command("mariadb-binlog")
    except ProgramsMissingError as error:
        print(error, file=sys.stderr)
        return 1
    if sys.argv[1:] == ["prepare"]:
        return 0
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    tell("version", text=f"mariadb-binlog {version.partition(' from ')[2] or version}")
    request = json.loads(sys.stdin.readline())
    try:
        file_name = ask(request, "SHOW BINARY LOGS")  # demanded also where it begins at a GTID
    except (pymysql.Error, OSError) as error:
        tell("error", text=f"SHOW BINARY LOGS: {error}", is_fatal=True)
        return 1
    tool = subprocess.Popen(
        [*command, *FIXED_OPTIONS, *options_of(request), file_name],
        env={**os.environ, "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert tool.stdout is not None
    assert tool.stderr is not None
    threading.Thread(target=end_with_input, args=(tool,), daemon=True).start()
    told: list[str] = []
    errors = threading.Thread(target=tell_errors, args=(tool.stderr, told))
    errors.start()
    follow(tool.stdout, request)
    errors.join()
    tool.wait()
    if not told:
        tell("error", text=f"mariadb-binlog has ended, exit code {tool.returncode}", is_fatal=True)
    return 1


def options_of(request: dict[str, Any]) -> list[str]:
    return [
        f"--host={request['host']}",
        f"--port={request['port']}",
        f"--user={request['user']}",
        f"--password={request['password']}",
        f"--stop-never-slave-server-id={request['server_id']}",
        f"--start-position={request['resume'] or request['start'] or BEGINNING}",
        "--ssl" if request["tls"] else "--skip-ssl",
    ]


def follow(output: IO[bytes], request: dict[str, Any]) -> None:
    reader = PrintedReader(tells_tables=bool(request.get("tables")))
    reached = dict(GtidPosition.parse(request["resume"] or request["start"]))
    for line in output:
        if request["delay_ms"] and line.startswith(b"# at "):
            time.sleep(request["delay_ms"] / 1000)
        for event in reader.take(line.rstrip(b"\n")):
            tell(**event)
            if event["event"] == "commit":
                gtid = Gtid.parse(event["gtid"])
                reached[gtid.domain_id] = gtid
                tell("position", position=str(GtidPosition(reached.values())))


def tell_errors(pipe: IO[bytes], told: list[str]) -> None:
    """Its lines on standard error; it ends after an error."""
    for line in pipe:
        text = line.decode(errors="replace").strip()
        if text:
            is_fatal = text.startswith("ERROR")
            tell("error", text=text, is_fatal=is_fatal)
            if is_fatal:
                told.append(text)


def end_with_input(tool: subprocess.Popen[bytes]) -> None:
    sys.stdin.read()
    tool.kill()
    tool.wait()
    os._exit(0)


if __name__ == "__main__":
    run(main)
