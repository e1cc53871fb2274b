"""The tests that MariaDB has of its replication, as Debian packs them: replicas may have their primaries behind relays.

Where a test waits for the place of the primary's log in its files, it waits for the GTID instead: a relay has files of
its own. `unpack_mariadb_test` of .ci/prepare brings the tests and their server.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ibbmaster.user_cache import program_directory
from tests.case_table import rows_of

SUITES = ("rpl", "multi_source")
SAVE = "--let $relayed_position= `SELECT @@GLOBAL.gtid_binlog_pos`"
WAIT = "--source include/wait_for_relayed.inc"
# MASTER_GTID_WAIT is counted in a status variable: it is for a replica that is further, or late
WAITING = """
--let $relayed_looks= 20
while ($relayed_looks)
{
  --dec $relayed_looks
  if (`SELECT @@GLOBAL.gtid_slave_pos = '$relayed_position'`)
  {
    --let $relayed_looks= 0
    --let $relayed_is_there= 1
  }
  if ($relayed_looks)
  {
    --real_sleep 0.05
  }
}
if (!$relayed_is_there)
{
  if (`SELECT MASTER_GTID_WAIT('$relayed_position', 60) = -1`)
  {
    --die the replica does not come to the position
  }
}
--let $relayed_is_there= 0
"""
WAITING_FOR_RECEIVED = """
--let $slave_param= Gtid_IO_Pos
--let $slave_param_value= $relayed_position
--source include/wait_for_slave_param.inc
"""
COMMAND = r"^[ \t]*(?:--[ \t]*)?{}[ \t]*;?[ \t]*(?:#.*)?$"
SYNC_SLAVE = re.compile(COMMAND.format(r"sync_slave_with_master(?:[ \t]+([\w$]+))?"), re.M | re.I)
SAVE_POSITION = re.compile(COMMAND.format("save_master_pos"), re.M | re.I)
SYNC = re.compile(COMMAND.format(r"sync_with_master(?:[ \t]+0(?:,.*)?)?"), re.M | re.I)
SOURCED = re.compile(r"^\s*(?:--\s*)?source\s+([\w/.-]+)", re.M)
COMMENT = re.compile(r"^#.*$", re.M)
LEFT_OUT = rows_of(__file__, "for_a_real_primary")
TIMEOUT_S = 3 * 3600.0


def unpacked() -> Path:
    """Where the tests are; else the test is skipped."""
    root = program_directory() / "mariadb-test-10.11"
    if not (root / "usr/bin/mariadb-test").exists():
        pytest.skip("MariaDB's own tests are not unpacked: .ci/prepare does that")
    if shutil.which("perl") is None:
        pytest.skip("MariaDB's own tests need perl")
    return root


def names(root: Path) -> dict[str, str]:
    """The tests of the suites, as `rpl.rpl_insert`, each with why it is not for a relay, or nothing."""
    found = {}
    for suite in SUITES:
        directory = root / "usr/share/mysql/mysql-test/suite" / suite
        for path in sorted(directory.rglob("*.test")):
            if path.parent.name != "include":
                text = _text_of(path, directory, set())
                reasons = (reason for pattern, reason in LEFT_OUT if re.search(pattern, text))
                found[f"{suite}.{path.stem}"] = next(reasons, "")
    return found


def _text_of(path: Path, suite: Path, seen: set[Path]) -> str:
    """With what it sources of its suite."""
    seen.add(path)
    text = path.read_bytes().decode("latin-1")
    sourced = (base / match[1] for match in SOURCED.finditer(text) for base in (suite, suite.parents[1]))
    mine = [one for one in sourced if suite in one.parents and one not in seen and one.is_file()]
    return "\n".join((COMMENT.sub("", text), *(_text_of(one, suite, seen) for one in mine)))


def waits_for_gtids(text: str) -> str:
    text = SYNC_SLAVE.sub(lambda match: f"{SAVE}\n--connection {match[1] or 'slave'}\n{WAIT}", text)
    return SYNC.sub(WAIT.replace("\\", "\\\\"), SAVE_POSITION.sub(lambda _: SAVE, text))


def make_tree(root: Path, tree: Path) -> Path:
    """The directory of the tests in a tree of links, whose own are only those that wait; returns it."""
    inside = ("usr", "share", "mysql", "mysql-test", "suite")
    here, there = root, tree
    for name in inside:
        there.mkdir(parents=True, exist_ok=True)
        for path in here.iterdir():
            if path.name not in (name, "include") or (path.name == "include" and here.name != "mysql-test"):
                (there / path.name).symlink_to(path)
        here, there = here / name, there / name
    there.mkdir()
    for path in here.iterdir():
        if path.name not in SUITES:
            (there / path.name).symlink_to(path)
    for part in (Path("include"), *(Path("suite") / suite for suite in SUITES)):
        _copy(here.parent / part, there.parent / part)
    include = there.parent / "include"
    (include / "wait_for_relayed.inc").write_text(WAITING)
    saving, received = include / "save_master_pos.inc", include / "sync_io_with_master.inc"
    saves = saving.read_text()
    running = include / "check_slave_is_running.inc"  # its relay may have to be started first
    checks = running.read_text()
    for path in (saving, received, running):
        path.unlink()
    saving.write_text(f"{saves}\n{SAVE}\n")
    received.write_text(WAITING_FOR_RECEIVED)
    running.write_text(checks.replace("check_slave_param", "wait_for_slave_param"))
    return there.parent


def _copy(source: Path, target: Path) -> None:
    target.mkdir()
    for path in source.iterdir():
        if path.is_dir():
            _copy(path, target / path.name)
            continue
        text = path.read_bytes().decode("latin-1")
        changed = waits_for_gtids(text) if path.suffix in (".test", ".inc") else text
        if changed == text and path.suffix != ".result":  # `patch` follows no links
            (target / path.name).symlink_to(path)
        else:
            (target / path.name).write_bytes(changed.encode("latin-1"))


def run_suite(
    root: Path, place: Path, chosen: Sequence[str], *, redirect: Path | None = None, port: int = 0, parallel: int = 2
) -> dict[str, str]:
    """How each test and combination ends: passed, failure or skipped. With `redirect` what servers connect to is what
    listens at `port`."""
    tests = make_tree(root, place / "tree")
    report = place / "report.xml"
    libraries = os.pathsep.join(str(root / part / "x86_64-linux-gnu") for part in ("usr/lib", "lib"))
    command = ["perl", "./mariadb-test-run.pl", f"--vardir={place / 'var'}", f"--xml-report={report}", "--force"]
    command += [
        "--max-test-fail=0",
        "--retry=1",
        f"--parallel={parallel}",
        "--testcase-timeout=3",
        "--nocheck-testcases",
    ]
    command += [f"--suite={','.join(SUITES)}"]
    if redirect is not None:
        command += [f"--mysqld-env=LD_PRELOAD={redirect}", f"--mysqld-env=RELAYS_PORT={port}"]
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
    environment.pop("MTR_BINDIR", None)
    options = {"capture_output": True, "text": True, "errors": "replace", "check": False, "timeout": TIMEOUT_S}
    done = subprocess.run([*command, *chosen], cwd=tests, env=environment, stdin=subprocess.DEVNULL, **options)
    (place / "said").write_text(done.stdout + done.stderr)
    with contextlib.suppress(FileNotFoundError):
        return {
            _name(case): case[0].tag if len(case) else "passed" for case in ElementTree.parse(report).iter("testcase")
        }
    raise AssertionError(f"MariaDB's tests did not run:\n{(done.stdout + done.stderr)[-4000:]}")


def _name(case: ElementTree.Element) -> str:
    combination = case.get("combinations")
    return f"{case.get('classname')}.{case.get('name')}" + (f" {combination}" if combination else "")


def build_redirect(directory: Path) -> Path:
    """redirect.c as a library. Without a compiler the test is skipped."""
    library = directory / "redirect.so"
    source = Path(__file__).parent / "redirect.c"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    except FileNotFoundError:
        pytest.skip("no cc here")
    return library
