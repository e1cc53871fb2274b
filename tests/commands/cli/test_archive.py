"""`ibbmaster archive` keeps what a log has, whatever is killed, and says what is there; so do `follow` and `serve`."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

import pytest

import ibbmaster
from ibbmaster.logs.archive.manifest import HEAD_NAME
from ibbmaster.sizes import time_text

GROUPS = 1000
FIRST_TIME = 1_700_000_000


def append(log, first, end):
    for number in range(first, end):
        statement = f"INSERT INTO shop.t VALUES ({number}, '{'x' * (number % 300)}')"
        log.append(f"0-1-{number}", statement, timestamp=FIRST_TIME + number)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "log"
    with ibbmaster.create(path, durability="write") as log:
        append(log, 1, GROUPS + 1)
    return path


def command(*arguments):
    return [sys.executable, "-m", "ibbmaster", *map(str, arguments)]


def run_alone(*arguments, **environment):
    given = {"capture_output": True, "text": True, "check": False, "timeout": 600, "env": {**os.environ, **environment}}
    return subprocess.run(command(*arguments), **given)


def expect_whole(run, directory, url):
    code, out, _ = run("archive", "verify", url, "--json")
    assert (code, json.loads(out)["faults"]) == (0, [])
    code, out, _ = run("diff", directory, url, "--json")
    assert (code, json.loads(out)["different"]) == (0, 0), out


def test_a_log_is_archived_listed_verified_pruned_and_read(run, directory, object_store):
    url = object_store.new_place()
    end = f"0-1-{GROUPS}"
    assert run("archive", directory, "--to", url) == (
        0, f"{GROUPS} transactions archived; {url} ends at {end}\n", ""
    )  # fmt: skip
    code, out, _ = run("archive", directory, "--to", url, "--json")
    assert (code, json.loads(out)) == (0, {"url": url, "groups": 0, "gtid_state": end})
    expect_whole(run, directory, url)

    code, out, _ = run("archive", "ls", url, "--json")
    listed = json.loads(out)
    assert (listed["groups"], listed["after"], listed["last_time"]) == (GROUPS, end, time_text(FIRST_TIME + GROUPS))
    assert time_text(int(time.time()) - 600) < listed["last_recoverable_time"] <= time_text(int(time.time()))
    _, out, _ = run("archive", "ls", url)
    assert out.startswith(f"{url}: 1 segments with {GROUPS} transactions, ")
    assert f"from [] to [{end}]" in out

    assert (
        run("archive", "prune", url, "--keep-bytes", "1", "--dry-run")[1]
        == "0 segments with 0 bytes would be removed\n"
    )
    assert run("info", url)[0] == run("verify", url)[0] == 0
    assert run("seek", url, "0-1-500")[1].endswith("start at archive.000001 offset 4, state []\n")
    assert json.loads(run("cat", url, "--after", f"0-1-{GROUPS - 1}")[1])["gtid"] == end
    assert run("convert", url, directory.parent / "converted", "--to", "ibb")[0] == 0
    assert json.loads(run("diff", directory, directory.parent / "converted", "--json")[1])["different"] == 0


def test_faults_are_named_and_end_with_1(run, directory, tmp_path):
    run("archive", directory, "--to", tmp_path / "to")
    [segment] = (tmp_path / "to").glob("*.zst")
    data = segment.read_bytes()
    segment.write_bytes(data[:99] + bytes([data[99] ^ 1]) + data[100:])
    code, out, _ = run("archive", "verify", tmp_path / "to")
    assert code == 1
    assert f"{segment}: it is not the object that was archived" in out
    assert out.endswith("1 segments, 0 transactions: 1 fault\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["log"], "expected DIR --to URL, or ls, verify or prune, and a URL"),
        (["ls", "to", "--to", "to"], "expected DIR --to URL"),
        (["prune", "to"], "what is to be kept? Give --keep-days or --keep-bytes"),
        (["prune", "to", "--keep-days", "1", "--for", "x"], "--for 'x': expected NAME=GTID, as reports=0-1-100"),
        (["prune", "to", "--keep-days", "1", "--for", "x=y"], "'y' is not a valid GTID"),
        (["ls", "to"], "there is no archive here (archive.json is missing)"),
        (["log", "--to", "http://x/y"], "http://x/y: expected a path, file:// or a URL of an object store"),
        (["nothing", "--to", "to"], "nothing: no such file or directory"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(run, directory, tmp_path, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").symlink_to(directory)
    code, out, err = run("archive", *arguments)
    assert (code, out) == (2, "")
    assert problem in err
    assert err.count("\n") == 1


def test_a_bucket_without_rights_and_a_missing_one_are_refused_in_one_line(run, directory, object_store):
    missing = "s3://missing/here"
    assert run("archive", directory, "--to", missing) == (2, "", f"ibbmaster: {missing}: there is no such bucket\n")
    object_store.fault = lambda request: 403
    url = object_store.new_place()
    code, _, err = run("archive", directory, "--to", url)
    assert (code, err) == (
        2, f"ibbmaster: {url}/{HEAD_NAME}: the object store refuses access: credentials or rights are missing\n"
    )  # fmt: skip


def test_killed_at_any_moment_an_archive_has_each_transaction_once(run, directory, object_store, monkeypatch):
    """Each run is killed after a random time; segments end elsewhere each time."""
    url = object_store.new_place()
    script = (
        "import sys; from ibbmaster.logs.archive import archiver, manifest; manifest.PAGE_ENTRIES = 3\n"
        "from ibbmaster.api import archiving; from functools import partial\n"
        "archiving.Archiver = partial(archiving.Archiver, segment_bytes=int(sys.argv.pop(1)))\n"
        "from ibbmaster.commands.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    killed = 0
    for _ in range(5):
        arguments = (str(random.randrange(5_000, 40_000)), "archive", str(directory), "--to", url)
        process = subprocess.Popen([sys.executable, "-c", script, *arguments], stderr=subprocess.PIPE)
        try:
            process.wait(random.uniform(0.3, 1.2))
        except subprocess.TimeoutExpired:
            process.kill()
            killed += 1
        process.communicate()
        assert process.returncode in (0, -9)
    monkeypatch.setattr("ibbmaster.logs.archive.manifest.PAGE_ENTRIES", 3)
    assert run("archive", directory, "--to", url)[0] == 0
    expect_whole(run, directory, url)
    print(f"{killed} of 5 runs were killed")


@pytest.fixture
def primary(directory):
    with ibbmaster.open(directory) as log, ibbmaster.serve(log, password="x", tls="off") as served:
        yield served


def test_follow_archives_what_it_stores_whatever_is_killed(run, primary, directory, tmp_path):
    source = f"mysql://repl:x@{primary.host}:{primary.port}"
    given = ("follow", source, "--to", tmp_path / "log", "--archive", tmp_path / "to", "--source-tls", "off")
    for _ in range(2):
        process = subprocess.Popen(command(*given), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.wait(random.uniform(0.5, 1.5))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
    done = run_alone(*given, "--until-end")
    assert done.returncode == 0, done.stderr
    expect_whole(run, directory, tmp_path / "to")
    assert json.loads(run("archive", "ls", tmp_path / "to", "--json")[1])["last_recoverable_time"] == time_text(
        FIRST_TIME + GROUPS
    )


def test_follow_refuses_an_archive_of_another_log_at_the_start(primary, tmp_path):
    with ibbmaster.create(tmp_path / "other") as other:
        other.append("7-7-7", "CREATE DATABASE shop")
    assert run_alone("archive", tmp_path / "other", "--to", tmp_path / "to").returncode == 0
    source = f"mysql://repl:x@{primary.host}:{primary.port}"
    given = ("--to", tmp_path / "log", "--archive", tmp_path / "to", "--source-tls", "off", "--until-end")
    done = run_alone("follow", source, *given)
    assert done.returncode == 2
    assert "holds another log, or more of it: the archive ends at '7-7-7', this directory at '" in done.stderr


def test_a_full_temporary_disk_ends_a_run_with_one_line_and_the_next_goes_on(run, directory, tmp_path, small_disk):
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - (48 << 10)))
    done = run_alone("archive", directory, "--to", tmp_path / "to", TMPDIR=str(small_disk))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"ibbmaster: .*: No space left on device.*\n", done.stderr), done.stderr
    assert [path.name for path in (tmp_path / "to").iterdir()] == [HEAD_NAME]
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
    assert run("archive", directory, "--to", tmp_path / "to")[0] == 0
    expect_whole(run, directory, tmp_path / "to")
