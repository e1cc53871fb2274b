"""Statements that administrate, over real sockets: on a log that this process writes, follows or reads."""

import contextlib
import json
import random
import subprocess
import sys
import threading
import time

import pymysql
import pytest

import ibbmaster
from tests.primary.server.conftest import PASSWORD, client_of, dumping, refusal

GROUPS = 100
TEXT = "x" * 200_000  # more than sockets hold, all together
OPTIONS = {"user": "repl", "password": PASSWORD, "tls": "off", "grant": "ALL"}
EOF, GTID_EVENT = 0xFE, 162


def fill(log, first=2, end=GROUPS + 1, text=TEXT):
    for number in range(first, end):
        log.append(f"0-1-{number}", f"INSERT INTO shop.t VALUES ('{text}')")
    log.sync()


@pytest.fixture
def log(tmp_path):
    with ibbmaster.create(tmp_path / "log", max_file_bytes="1M", durability="write") as log:
        log.append("0-1-1", "CREATE DATABASE shop")
        yield log


@pytest.fixture
def primary(log):
    with ibbmaster.serve(log, **OPTIONS) as primary:
        yield primary


@pytest.fixture
def ask(primary):
    """Carry out a statement; returns its warnings."""
    with client_of(primary.port) as connection, connection.cursor() as cursor:

        def ask(sql):
            cursor.execute(sql)
            cursor.execute("SHOW WARNINGS")
            return list(cursor.fetchall())

        yield ask


def received(replica):
    """The sequence numbers that come up to the EOF of a dump, or up to the end of the connection."""
    found = []
    with contextlib.suppress(pymysql.err.OperationalError):
        while (packet := replica._read_packet().get_all_data())[0] != EOF:
            if packet[5] == GTID_EVENT:
                found.append(int.from_bytes(packet[20:28], "little"))
    return found


def until_last(replica, last):
    found = []
    while last not in found:
        packet = replica._read_packet().get_all_data()
        if packet[5] == GTID_EVENT:
            found.append(int.from_bytes(packet[20:28], "little"))
    return found


def test_a_purge_leaves_what_a_dump_reads_which_loses_nothing(log, primary, ask):
    fill(log)
    replica = dumping(primary.port)
    replica._read_packet()
    active = log.status.active_file

    ((level, code, text),) = ask(f"PURGE BINARY LOGS TO '{active}'")

    kept = log.files[0].name
    assert (level, code) == ("Note", 1375)
    assert text == f"Binary log '{kept}' is not purged because a replica, a transaction or a newer file needs it"
    assert ask("FLUSH BINARY LOGS") == []
    assert until_last(replica, GROUPS) == list(range(1, GROUPS + 1))
    log.append("0-1-1000", "CREATE DATABASE later")
    assert until_last(replica, 1000) == [1000]
    while ask(f"PURGE BINARY LOGS TO '{active}'"):
        time.sleep(0)  # its reader goes on to the next file where it waits
    assert log.files[0].name == active


def test_files_that_nobody_needs_go_by_name_and_by_time(log, ask):
    fill(log, end=20)
    ask("FLUSH BINARY LOGS")
    second = log.files[1].name
    assert ask("PURGE BINARY LOGS BEFORE '2001-01-01'") == []
    assert len(log.files) > 3
    assert ask(f"PURGE MASTER LOGS TO '{second}'") == []
    assert log.files[0].name == second
    active = log.status.active_file
    text = f"Binary log '{active}' is not purged because it is the current active binlog"
    assert ask("PURGE BINARY LOGS BEFORE '2099-01-01'") == [("Note", 1375, text)]
    assert log.files[0].name == active
    assert refusal(ask, f"PURGE BINARY LOGS TO '{second}'") == (1373, "Target log not found in binlog index")


def test_a_domain_is_forgotten_once_its_files_are_gone(log, ask):
    log.append("7-1-1", "CREATE DATABASE other")
    log.sync()
    code, text = refusal(ask, "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(7)")
    assert (code, "from the domain ('7') being deleted" in text, str(log.state)) == (1076, True, "0-1-1,7-1-1")
    ask("FLUSH BINARY LOGS")
    ask(f"PURGE BINARY LOGS TO '{log.status.active_file}'")
    text = "The gtid domain being deleted ('8') is not in the current binlog state"
    assert ask("FLUSH BINARY LOGS DELETE_DOMAIN_ID=(7,8)") == [("Warning", 1076, text)]
    assert str(log.state) == "0-1-1"


def test_a_log_begins_anew_and_takes_a_state_only_while_it_is_empty(log, primary, ask):
    fill(log, end=20)
    replica = dumping(primary.port)
    until_last(replica, 19)
    assert refusal(ask, "SET GLOBAL gtid_binlog_state = '0-1-5'")[0] == 1956

    assert ask("RESET MASTER") == []

    assert (str(log.state), log.files[0].name) == ("", "binlog-000000.ibb")
    assert received(replica) == []
    assert refusal(ask, "SET GLOBAL gtid_binlog_state = 'rubbish'") == (1941, "Could not parse GTID list")
    assert refusal(ask, "SET GLOBAL gtid_binlog_state = NULL") == (1210, "Incorrect arguments to SET")
    assert ask("SET GLOBAL gtid_binlog_state = '0-1-5,0-2-4'") == []
    assert str(log.state.position()) == "0-2-4"
    assert refusal(ask, "SET GLOBAL gtid_binlog_state = ''")[0] == 1956
    log.append("0-2-6", "CREATE DATABASE again")
    assert until_last(dumping(primary.port, "0-2-4"), 6) == [6]


def test_who_may_not_administrate_changes_nothing(log, tmp_path):
    fill(log, end=10)
    files = log.files
    with ibbmaster.serve(log, **OPTIONS | {"grant": None}) as primary, client_of(primary.port) as connection:
        for sql in ("PURGE BINARY LOGS BEFORE NOW()", "FLUSH BINARY LOGS", "RESET MASTER", "SHUTDOWN"):
            assert refusal(connection.query, sql)[0] == 1227
        connection.ping(reconnect=False)
    assert log.files == files


@pytest.mark.parametrize("sql", ["PURGE BINARY LOGS BEFORE NOW()", "FLUSH BINARY LOGS", "RESET MASTER"])
def test_a_log_that_is_only_read_is_refused_with_what_helps(log, sql):
    with ibbmaster.serve(log.path, **OPTIONS) as primary, client_of(primary.port) as connection:
        code, text = refusal(connection.query, sql)
    command = {"P": "purge", "F": "flush", "R": "reset"}[sql[0]]
    assert code == 1290
    assert text.endswith(f": serve the directory with --own, or run `ibbmaster {command}` while nothing writes it")


def test_a_log_that_follows_another_is_rotated_and_purged_and_begins_at_no_other_state(log, primary, tmp_path):
    fill(log, end=20)
    with (
        ibbmaster.follow(primary.dsn, tmp_path / "relay", tls="off", max_file_bytes="1M") as followed,
        ibbmaster.serve(followed.log, **OPTIONS) as relay,
        client_of(relay.port) as connection,
    ):
        dump = dumping(relay.port)
        until_last(dump, 19)
        dump.close()
        changes = ("RESET MASTER", "SET GLOBAL gtid_binlog_state=''", "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(0)")
        for sql in changes:
            code, text = refusal(connection.query, sql)
            assert (code, f": it follows 127.0.0.1:{primary.port}, and" in text) == (1290, True)
        connection.query("FLUSH BINARY LOGS")
        connection.query(f"PURGE BINARY LOGS TO '{followed.log.status.active_file}'")
        log.append("0-1-500", "CREATE DATABASE later")
        assert until_last(dumping(relay.port, "0-1-19"), 500) == [500]


# As mysql-test/suite/binlog_in_engine/rpl_shutdown_wait_slaves.test
@pytest.mark.parametrize("words", ["SLAVES", "REPLICAS"])
def test_a_shutdown_may_wait_until_every_replica_has_everything(log, primary, words):
    fill(log)
    behind, ahead = dumping(primary.port), dumping(primary.port, f"0-1-{GROUPS}", server_id=8)
    for replica in (behind, ahead):
        replica._read_packet()  # its dump has begun
    idle, administrator = client_of(primary.port), client_of(primary.port)
    log.append(f"0-1-{GROUPS + 1}", "CREATE DATABASE later")

    administrator.query(f"SHUTDOWN WAIT FOR ALL {words}")

    assert idle._sock.recv(1) == b""  # others are ended, and the door is closed, before the dumps are
    with pytest.raises(pymysql.err.OperationalError):
        client_of(primary.port)
    assert received(behind) == list(range(1, GROUPS + 2))
    assert received(ahead) == [GROUPS + 1]


def test_a_shutdown_that_waits_is_cut_short_by_one_that_does_not(log, primary):
    fill(log)
    behind, idle = dumping(primary.port), client_of(primary.port)
    behind._read_packet()
    client_of(primary.port).query("SHUTDOWN WAIT FOR ALL REPLICAS")
    assert idle._sock.recv(1) == b""

    primary.stop()

    assert len(received(behind)) < GROUPS


def test_a_shutdown_ends_dumps_where_they_are_after_its_answer(log, primary):
    fill(log)
    behind = dumping(primary.port)
    behind._read_packet()

    client_of(primary.port).query("SHUTDOWN")

    primary.stop()
    assert len(received(behind)) < GROUPS
    log.append("0-1-1000", "CREATE DATABASE later")
    log.sync()
    assert str(log.state) == "0-1-1000"


def test_administration_among_commits_leaves_a_whole_log(log, ask):
    done = threading.Event()

    def write():
        fill(log, end=300, text="y" * 20_000)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        ask("FLUSH BINARY LOGS")
        ask("PURGE BINARY LOGS BEFORE '2099-01-01'")
    writer.join()
    with ibbmaster.open(log.path) as read:
        assert (str(read.state), str(log.state)) == ("0-1-299", "0-1-299")
        numbers = [group.gtid.seq_no for group in read.groups()]
    assert numbers == list(range(300 - len(numbers), 300))


@pytest.mark.parametrize("moment", ["a file is gone", "any"])
def test_a_process_that_is_killed_in_a_reset_leaves_a_log_that_opens(tmp_path, request, moment):
    path = tmp_path / "log"
    with ibbmaster.create(path, max_file_bytes="256K", durability="write") as log:
        log.append("0-1-1", "CREATE DATABASE shop")
        fill(log, end=60, text="z" * 100_000)
    (password := tmp_path / "password").write_text(PASSWORD)
    password.chmod(0o600)
    command = [sys.executable, "-m", "ibbmaster", "serve", path, "--own", "--listen", "127.0.0.1:0", "--json"]
    command += ["--password-file", password, "--tls", "off", "--grant", "ALL"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        connection = client_of(json.loads(process.stdout.readline())["port"])
        connection._execute_command(pymysql.constants.COMMAND.COM_QUERY, "RESET MASTER")
        if moment == "any":
            connection._sock.settimeout(random.Random(request.config.option.seed).random() / 10)
            with contextlib.suppress(OSError):
                connection._sock.recv(1)
        else:
            while (path / "binlog-000003.ibb").exists():
                time.sleep(0)
        process.kill()
    with ibbmaster.open(path, writable=True) as log:
        state = str(log.state)
        assert state == "" if moment != "any" else state in ("", "0-1-59")
        log.append("0-1-60", "CREATE DATABASE again")
    with ibbmaster.open(path) as log:
        assert [group.gtid.seq_no for group in log.groups()] == list(range(1 if state else 60, 61))
