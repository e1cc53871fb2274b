"""What commands print as JSON is what docs/json.md says, in both directions: no field more, none less, of these types.

Each command runs as one types it. A field that is not always there has to be seen once."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.facts import rows_of
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.testkit.mariadb_programs import installed_versions

ROOT = Path(__file__).parents[3]
IBB, CLASSIC = ROOT / "fixtures/ibb", ROOT / "fixtures/classic"
SECTION = re.compile(r"^## `([^`]+)`$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\S+)` \| ([\w ]+) \| .+ \|$", re.MULTILINE)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
IS_NUMBER = lambda value: isinstance(value, int | float) and not isinstance(value, bool)  # noqa: E731 - one of a table
KINDS = {
    "text": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "bytes": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "seconds": IS_NUMBER,
    "boolean": lambda value: isinstance(value, bool),
    "time": lambda value: TIME.fullmatch(value) is not None,
    "GTID": lambda value: str(Gtid.parse(value)) == value,
    "GTIDs": lambda value: sorted(map(str, GtidState.parse(value))) == sorted(filter(None, value.split(","))),
    "row": lambda value: isinstance(value, dict),
    "object": lambda value: isinstance(value, dict | list),
    "any": lambda value: True,
    "null": lambda value: value is None,
}
CONTRACT = {
    name: {path.replace("?", ""): (kind.split(" or "), "?" in path) for path, kind in ROW.findall(text)}
    for name, text in SECTION.findall((ROOT / "docs/json.md").read_text())
}
NAMED = ("tables{}", "kinds{}")  # of objects whose keys are names


class Seen:
    """Objects that a command has printed, each checked against its table when it is taken."""

    def __init__(self, name):
        self._name, self._table = name, CONTRACT[name]
        self._paths = set()

    def take(self, *objects):
        for found in objects:
            self._walk(found, "")

    def _walk(self, value, path):
        self._paths.add(path)
        kinds = self._kinds(path)
        assert kinds, f"{self._name}: {path} is in no table: {value!r}"
        if "part" not in kinds or value is None:
            fits = [
                kind for kind in kinds if kind == "any" or ((value is None) == (kind == "null") and KINDS[kind](value))
            ]
            assert fits, f"{self._name}: {path} is {value!r}, and not {' or '.join(kinds)}"
        if isinstance(value, list) and self._kinds(f"{path}[]"):
            for inner in value:
                self._walk(inner, f"{path}[]")
        elif isinstance(value, dict) and f"{path}{{}}" in NAMED:
            for inner in value.values():
                self._walk(inner, f"{path}{{}}")
        elif isinstance(value, dict) and self._fields(path):
            missing = {field for field, is_optional in self._fields(path).items() if not is_optional} - value.keys()
            assert missing == set(), f"{self._name}: {path} has no {missing}: {value}"
            for key, inner in value.items():
                self._walk(inner, f"{path}.{key}".lstrip("."))

    def _kinds(self, path):
        """Types of a row; of what other rows are a part of, that it is."""
        if path in self._table:
            return self._table[path][0]
        starred = [kinds for name, (kinds, _) in self._table.items() if name[0] == "*" and path.endswith(name[1:])]
        if "." not in path and path and starred:
            return starred[0]
        has_parts = not path or any(name.startswith((f"{path}.", f"{path}[]", f"{path}{{}}")) for name in self._table)
        return ["object", "part"] if has_parts else []

    def _fields(self, path):
        """Those that an object has by its rows, and whether they are optional."""
        below = {name.removeprefix(f"{path}.") if path else name: row for name, row in self._table.items()}
        if path:
            below = {name: row for name, row in below.items() if f"{path}.{name}" in self._table}
        found = {}
        for name, (_, is_optional) in below.items():  # a row of the field itself comes before those of its parts
            found.setdefault(re.split(r"[.\[{]", name)[0], is_optional or name[0] == "*")
        return found

    def expect_all(self, *besides):
        """Each field of the table was seen."""
        unseen = {
            path
            for path in self._table.keys() - set(besides)
            if not any(one == path or ("*" in path and one.endswith(path[1:])) for one in self._paths)
        }
        assert unseen == set(), f"{self._name} never printed them"


@pytest.fixture
def printed(run):
    """What a command prints."""

    def printed(*arguments, code=0, options=("--json",)):
        ended, out, err = run(*arguments, *options)
        assert ended == code, err
        return [json.loads(line) for line in out.splitlines()]

    return printed


@pytest.fixture
def unfinished(tmp_path):
    """Traditional files whose server crashed inside a transaction."""
    shutil.copytree(CLASSIC / "11.8/crashed", tmp_path / "unfinished")
    last = tmp_path / "unfinished/binlog.000002"
    last.write_bytes(last.read_bytes()[:-10])
    return tmp_path / "unfinished"


def test_each_command_with_json_has_its_table():
    rows = [row for row in rows_of("ibbmaster.commands.cli", "options") if row[3] == "flag"]
    shared = {row[0] for row in rows if row[2] == "--json" and row[0].startswith("@")}
    all_rows = list(rows_of("ibbmaster.commands.cli", "options"))
    users = {row[0] for row in all_rows if row[2] in shared} | {row[0] for row in rows if row[2] == "--json"}
    described = {name.partition(" --")[0] for name in CONTRACT} - {""}
    assert {user for user in users if not user.startswith("@")} <= described
    jobs = {f"archive {job}" for job in ("ls", "verify", "prune")}
    assert described - users - jobs == {"cat", "--log-format json"}


def test_info_and_seek(printed, tmp_path, feed):
    feed(tmp_path / "log", range(1, 20), crash=True)
    shutil.copytree(IBB / "types", tmp_path / "cut")
    (tmp_path / "cut/binlog-000001.ibb").write_bytes((IBB / "types/binlog-000001.ibb").read_bytes()[:40_000])
    info, seek = Seen("info"), Seen("seek")
    for log in (IBB / "domains", IBB / "xa-and-ddl", CLASSIC / "11.8/domains", tmp_path / "log"):
        info.take(*printed("info", log))
    info.take(*printed("info", tmp_path / "cut", "--until", "0-1-50"))
    [with_seek] = printed("info", IBB / "types", "--seek", "0-1-50")
    info.take(with_seek)
    info.expect_all()
    for log, position in ((IBB / "types", "0-1-50"), (CLASSIC / "11.8/domains", "0-1-2")):
        seek.take(*printed("seek", log, position))
    seek.take(with_seek["seek"], *printed("seek", IBB / "types", "0-1-9999", code=1))
    seek.take(*printed("seek", IBB / "types", "--time", "2100-01-01"))
    with ibbmaster.create(tmp_path / "clock") as log:
        for number, timestamp in enumerate((1_000_000, 3_000_000, 1_500_000, 2_000_000), 1):
            log.append(f"0-1-{number}", f"CREATE DATABASE d{number}", timestamp=timestamp)
            log.flush()
    seek.take(*printed("seek", tmp_path / "clock", "--time", "1970-01-12 13:46:40+00:00"))
    seek.expect_all()


def test_inspect(printed, tmp_path):
    seen = Seen("inspect")
    cut = tmp_path / "binlog.000001"
    cut.write_bytes((CLASSIC / "11.8/domains/binlog.000001").read_bytes()[:4000])
    for path in (IBB / "domains/binlog-000000.ibb", IBB / "domains/binlog-000001.ibb", cut):
        seen.take(*printed("inspect", path))
    seen.take(*printed("inspect", CLASSIC / "11.8/domains/binlog.000001", "--offset", 4))
    for file in ("large-groups/binlog-000002.ibb", "types/binlog-000000.ibb"):
        seen.take(*printed("inspect", IBB / file, "--page", 1))
    seen.expect_all("header")  # of a record whose head is on two pages


def test_verify_and_check(printed, tmp_path, feed, unfinished):
    verify, check = Seen("verify"), Seen("check")
    feed(tmp_path / "log", range(1, 20), crash=True)
    verify.take(*printed("verify", IBB / "types"), *printed("verify", tmp_path / "log"))
    page = tmp_path / "log/binlog-000000.ibb"
    data = bytearray(page.read_bytes())
    data[20_000] ^= 1
    page.write_bytes(data)
    (tmp_path / "log/ibbmaster-redo-0").unlink(missing_ok=True)
    verify.take(*printed("verify", tmp_path / "log", code=1))
    verify.take(*printed("verify", unfinished))
    verify.expect_all()
    check.take(*printed("check", IBB / "types"), *printed("check", tmp_path / "nothing", code=1))
    check.expect_all()


def test_diff(printed):
    seen = Seen("diff")
    seen.take(*printed("diff", IBB / "types", IBB / "types"))
    seen.take(*printed("diff", IBB / "types", IBB / "xa-and-ddl", code=1))
    seen.expect_all()


def test_what_changes_a_directory(printed, run, tmp_path, feed):
    feed(tmp_path / "log", range(1, 20), crash=True)
    recover, salvage, purge, backup = map(Seen, ("recover", "recover --salvage", "purge", "backup"))
    recover.take(*printed("recover", tmp_path / "log"))
    with ibbmaster.create(tmp_path / "log", exist_ok=True) as log:
        group = log.begin()
        group.write(b"x" * 100)
        group.prepare("one")
    recover.take(*printed("recover", tmp_path / "log"))
    recover.expect_all()
    shutil.copytree(IBB / "types", tmp_path / "damaged")
    file = tmp_path / "damaged/binlog-000000.ibb"
    data = bytearray(file.read_bytes())
    data[20_000] ^= 1
    file.write_bytes(data)
    salvage.take(*printed("recover", tmp_path / "damaged", "--salvage", tmp_path / "saved", code=1))
    salvage.expect_all()
    backup.take(*printed("backup", IBB / "types", "--to", tmp_path / "copy"))
    backup.expect_all()
    assert run("flush", tmp_path / "copy")[0] == 0
    purge.take(*printed("purge", tmp_path / "copy", "--to", "binlog-000001.ibb"))
    purge.take(*printed("purge", tmp_path / "log", "--to", "binlog-000000.ibb"))
    purge.expect_all()


def test_convert(printed, tmp_path, unfinished):
    seen = Seen("convert")
    seen.take(*printed("convert", CLASSIC / "11.8/domains", tmp_path / "ibb"))
    seen.take(*printed("convert", tmp_path / "ibb", tmp_path / "traditional"))
    seen.take(*printed("convert", tmp_path / "ibb", tmp_path / "part", "--to", "ibb", "--until", "0-1-2"))
    seen.take(*printed("convert", unfinished, tmp_path / "crashed"))
    seen.expect_all()


def test_archive(printed, tmp_path):
    put, ls, verify, prune = map(Seen, ("archive", "archive ls", "archive verify", "archive prune"))
    url = tmp_path / "archive"
    put.take(*printed("archive", IBB / "types", "--to", url))
    ls.take(*printed("archive", "ls", url))
    stray = url / "99999999_0-1-9.zst"
    stray.write_bytes(b"")
    verify.take(*printed("archive", "verify", url))
    [segment] = [path for path in url.glob("*.zst") if path != stray]
    prune.take(*printed("archive", "prune", url, "--keep-bytes", "1", "--for", "reports=0-1-1", "--dry-run"))
    segment.write_bytes(segment.read_bytes()[:-1])
    verify.take(*printed("archive", "verify", url, code=1))
    for seen in (put, ls, verify, prune):
        seen.expect_all()


def test_cat(printed):
    seen = Seen("cat")
    for log in (IBB / "xa-and-ddl", CLASSIC / "11.8/domains", CLASSIC / "11.8/group-commit"):
        seen.take(*printed("cat", log, options=()))
    seen.expect_all()


def test_lake(printed, tmp_path):
    rows, table, maintain = map(Seen, ("lake snapshot", "lake snapshot --to", "lake maintain"))
    rows.take(*printed("lake", "snapshot", IBB / "xa-and-ddl", "shop.parent"))
    table.take(*printed("lake", "snapshot", IBB / "xa-and-ddl", "shop.parent", "--to", tmp_path / "parquet"))
    maintain.take(*printed("lake", "maintain", IBB / "xa-and-ddl", "--to", f"delta://{tmp_path}/lake"))
    table.expect_all()
    maintain.expect_all("rewritten[]", "removed[]")  # after an ALTER, or a killed run


def started(*arguments):
    command = [sys.executable, "-m", "ibbmaster", *map(str, arguments), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    process.send_signal(signal.SIGTERM)
    said, problems = process.communicate(timeout=600)
    assert process.returncode == 0, problems
    return said, problems


def test_what_runs_until_a_signal(tmp_path):
    serve, follow, record, line = map(Seen, ("serve", "follow", "record", "--log-format json"))
    listen = ("--listen", "127.0.0.1:0")
    serving = started("serve", IBB / "types", *listen, "--tls", "off", "-v", "--log-format", "json")
    [port] = {(serve.take(found), found["port"])[1] for found in [json.loads(serving.stdout.readline())]}
    recording = started("record", *listen, "--from", f"127.0.0.1:{port}", "--to", tmp_path / "scenario")
    record.take(found := json.loads(recording.stdout.readline()))
    source = f"mysql://repl@127.0.0.1:{found['port']}"
    command = [sys.executable, "-m", "ibbmaster", "follow", source, "--to", tmp_path / "log", "--until-end", "--json"]
    followed = subprocess.run(command, capture_output=True, text=True, check=True)
    follow.take(*map(json.loads, followed.stdout.splitlines()))
    refused = source.replace("repl", "nobody")
    assert subprocess.run([*command[:4], refused, "--to", tmp_path / "other"], capture_output=True).returncode == 2
    ahead = ("--start", "0-1-99999", "--to", tmp_path / "ahead", "--until-end")
    assert subprocess.run([*command[:5], *ahead], capture_output=True).returncode == 2
    record.take(json.loads(ended(recording)[0]))
    line.take(*map(json.loads, ended(serving)[1].splitlines()))
    for seen in (follow, record):
        seen.expect_all()
    line.expect_all("exception")  # which there is none of

    (tmp_path / "scenario.toml").write_text('[[group]]\ngtid = "0-1-1"\nddl = "CREATE DATABASE shop"\n')
    playing = started("serve", "--scenario", tmp_path / "scenario.toml", *listen)
    serve.take(json.loads(playing.stdout.readline()))
    ended(playing)
    serve.expect_all()


def test_restore(printed, tmp_path):
    seen = Seen("restore")
    asked = ("restore", IBB / "types", "--into", "new", "--datadir", tmp_path / "data")
    seen.take(*printed(*asked, "--until", "0-1-20", "--skip", "0-1-19", "--dry-run"))
    if not installed_versions():
        pytest.skip("no MariaDB is installed, into whose data directory it could restore")
    seen.take(*printed(*asked, "--until", "0-1-20"))
    seen.expect_all()
