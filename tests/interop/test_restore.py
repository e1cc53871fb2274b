"""A database is brought back to an exact transaction or second: real servers say what it had then."""

import contextlib
import json
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote

import pytest
from lanes.primary import ibbmaster, run_program, tool_command
from lanes.replica import Replica

import ibbmaster as package
from ibbmaster.commands.cli.main import main
from ibbmaster.testkit.mariadb_server import RealPrimary

pytestmark = pytest.mark.interop
DOMAINS = (0, 1, 2)
LOG = Path(__file__).parents[2] / "fixtures" / "ibb" / "domains"
VERSIONS = ("10.11", "11.8")
BAD = json.loads(Path(__file__).with_suffix(".json").read_text())
STRICT = ("--gtid-strict-mode=ON", "--slave-parallel-threads=4")


class History:
    """What the tables of each domain, each written by one thread, had after each of its transactions."""

    def __init__(self, server: RealPrimary, seed: object) -> None:
        self.server = server
        self.seed = seed
        self.hashes: dict[str, object] = {}
        self.gtids: dict[int, list[str]] = defaultdict(list)
        server.sql("CREATE DATABASE shop")
        self._over = threading.Event()

    def _write(self, domain: int) -> None:
        random_of = random.Random(f"{self.seed} {domain}")
        connection = self.server.connect()
        with contextlib.closing(connection), connection.cursor() as cursor:

            def run(*statements: str) -> None:
                for statement in statements:
                    cursor.execute(statement)
                cursor.execute("SELECT @@last_gtid")
                ((gtid,),) = cursor.fetchall()
                self.hashes[gtid] = hash_of(cursor, domain)
                self.gtids[domain].append(gtid)

            cursor.execute(f"SET gtid_domain_id={domain}")
            run(f"CREATE TABLE shop.t{domain} (id INT PRIMARY KEY, v INT, note VARCHAR(60)) ENGINE=InnoDB")
            for number in range(10**9):
                if self._over.is_set():
                    return
                key, table = random_of.randrange(40), f"shop.t{domain}"
                changes = [
                    f"REPLACE INTO {table} VALUES ({key}, {number}, REPEAT('x', {key}))",
                    f"UPDATE {table} SET v = v + 1 WHERE id > {key}",
                    f"DELETE FROM {table} WHERE id = {key}",
                ]
                if random_of.random() < 0.02:
                    run(f"ALTER TABLE {table} COMMENT '{number}'")
                elif random_of.random() < 0.3:
                    run(
                        "BEGIN",
                        *random_of.choices(changes, k=3),
                        f"INSERT INTO {table} VALUES ({number + 100}, 0, '')",
                        "COMMIT",
                    )
                else:
                    run(f"REPLACE INTO {table} VALUES ({key}, {number}, '')")

    @contextlib.contextmanager
    def growing(self):
        threads = [threading.Thread(target=self._write, args=(domain,)) for domain in DOMAINS]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def wait_for(self, count: int) -> None:
        while min(len(self.gtids[domain]) for domain in DOMAINS) < count:
            time.sleep(0.02)

    def expect(self, target: Replica, position: str) -> None:
        """A server has exactly what was there at a position."""
        assert target.position == set(position.split(","))
        with target.connect() as connection, connection.cursor() as cursor:
            for gtid in position.split(","):
                domain = int(gtid.split("-")[0])
                known = self.hashes.get(gtid) if gtid != "0-1-1" else None
                assert hash_of(cursor, domain) == known, f"domain {domain} at {gtid}"


def hash_of(cursor, domain: int) -> object:
    cursor.execute(f"CHECKSUM TABLE shop.t{domain}")
    ((_, checksum),) = cursor.fetchall()
    if checksum is None:
        return None
    cursor.execute(f"SELECT table_comment FROM information_schema.tables WHERE table_name='t{domain}'")
    return checksum, cursor.fetchall()


def into(server: Replica) -> str:
    return f"mysql://root@{quote(str(server.socket), safe='')}"


def restore(log: Path, server: Replica, *options: str, code: int = 0) -> dict:
    said = run_program(ibbmaster("restore", log, "--into", into(server), "--json", *options), code=code)
    return json.loads(said) if code == 0 else {"problem": said}


@pytest.fixture
def is_long(pytestconfig):
    """For what takes a while: one GTID and one second, an error and refusals are tried in every run."""
    if not pytestconfig.getoption("--interop-all"):
        pytest.skip("some 15 s each: --interop-all")


@pytest.fixture
def history(new_server, version, seed):
    with History(new_server(version, "--gtid-strict-mode=1"), seed).growing() as found:
        found.wait_for(120)
    return found


def position_at(log: Path, place: int) -> str:
    """The position after a number of transactions of a log, in its order."""
    state = package.GtidState()
    with package.open(log) as opened:
        for group, _ in zip(opened, range(place), strict=False):
            state.log(group.gtid)
    return str(state.position())


def test_each_gtid_and_second_is_restored_exactly(
    history, new_replica, version, tmp_path, import_files, seed, pytestconfig
):
    random_of = random.Random(seed)
    log = tmp_path / "log"
    import_files([*history.server.data.glob("binlog.*[0-9]")], log)
    with package.open(log) as opened:
        groups = [(str(group.gtid), group.timestamp) for group in opened]
    for number in range(10 if pytestconfig.getoption("--interop-all") else 2):
        place = random_of.randrange(10, len(groups))
        gtid, second = groups[place - 1]
        until = [gtid]
        if number % 2:
            later = (place for place, (_, timestamp) in enumerate(groups) if timestamp > second)
            place = next(later, len(groups))
            until = [time.strftime("%Y-%m-%d %H:%M:%S+00:00", time.gmtime(second))]
        elif number % 4 == 2:
            place -= 1
            until = [gtid, "--before"]
        target = new_replica(version, *STRICT, server_id=1 + number % 2)  # 1 is that of the primary
        said = restore(history.server.data / "binlog.index" if number % 3 else log, target, "--until", *until)
        expected = position_at(log, place)
        assert set(said["to"].split(",")) == set(expected.split(","))
        history.expect(target, expected)
        assert target.sql("SHOW ALL SLAVES STATUS") == ()
        assert target.sql("SELECT @@slave_parallel_threads, @@slave_exec_mode, @@server_id") == (
            (4, "STRICT", 1 + number % 2),
        )


def back_up(version: str, server: Replica, to: Path, *options: str) -> None:
    """By mariadb-backup, ready for use."""
    program = tool_command(version, "mariadb-backup", "--skip-ssl")
    run_program([*program, "--backup", f"--socket={server.socket}", "--user=root", f"--target-dir={to}", *options])
    run_program([*program, "--prepare", f"--target-dir={to}"])


@pytest.fixture
def restored_server(server_of, started, version):
    """Start a server on a copy of a backup."""

    def start(backup: Path, *options: str) -> Replica:
        def make(*arguments) -> Replica:
            template, directory, *others = arguments
            directory.mkdir()
            shutil.copytree(backup, directory / "data")
            return Replica(template, directory, *others)

        return started("the restored server", server_of(make, version, *STRICT, *options))

    return start


@pytest.mark.usefixtures("is_long")
def test_a_backup_under_load_goes_on_without_a_transaction_twice(new_server, restored_server, version, tmp_path, seed):
    history = History(new_server(version, "--gtid-strict-mode=1"), seed)
    count = 4
    with history.growing():
        for number in range(count):
            history.wait_for(30 * (number + 1))
            back_up(version, history.server, tmp_path / f"backup{number}")
        history.wait_for(40 * (count + 1))
    log = history.server.data / "binlog.index"
    until = history.server.sql("SELECT @@gtid_binlog_pos")[0][0]
    for number in range(count):
        backup = tmp_path / f"backup{number}"
        target = restored_server(backup, "--server-id=1")
        assert (
            "it has tables, and nothing says their position"
            in restore(log, target, "--until", until, code=2)["problem"]
        )
        said = restore(log, target, "--until", until, "--backup", str(backup))
        assert said["from_by"].endswith("_binlog_info")
        history.expect(target, until)


@pytest.mark.usefixtures("is_long")
def test_a_dump_under_load_goes_on_where_it_says_it_ended(new_server, new_replica, version, tmp_path, seed):
    history = History(new_server(version, "--gtid-strict-mode=1"), seed)
    dump = tmp_path / "dump.sql"
    with history.growing():
        history.wait_for(30)
        made = ["--master-data=2", "--gtid", "--single-transaction", "--databases", "shop", f"--result-file={dump}"]
        run_program(
            tool_command(version, "mariadb-dump", "--skip-ssl", f"--socket={history.server.socket}", "-uroot", *made)
        )
        history.wait_for(60)
    log = history.server.data / "binlog.index"
    until = history.server.sql("SELECT @@gtid_binlog_pos")[0][0]
    target = new_replica(version, *STRICT, "--log-bin=own", "--log-slave-updates")
    client = tool_command(version, "mariadb", "--skip-ssl", f"--socket={target.socket}", "-uroot")
    run_program(client, input=dump.read_text())
    asked = ("--until", until, "--backup", str(dump))
    assert "RESET MASTER there, if this is of loading a backup" in restore(log, target, *asked, code=2)["problem"]
    target.sql("RESET MASTER")
    assert restore(log, target, *asked)["from_by"] == "dump.sql"
    history.expect(target, until)


@pytest.fixture
def accident(tmp_path):
    """A log with a transaction that no server can apply."""
    with package.create(tmp_path / "accident") as log:
        log.append("0-1-1", "CREATE DATABASE shop")
        log.append("0-1-2", "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB")
        for number in range(1, 300):
            log.append(f"1-1-{number}", [f"INSERT INTO shop.t VALUES ({number})"])
        log.append("0-1-3", ["INSERT INTO shop.t VALUES (1)"])
        log.append("0-1-4", ["INSERT INTO shop.t VALUES (1000)"])
        log.append("1-1-300", ["INSERT INTO shop.t VALUES (300)"])
    return tmp_path / "accident"


def test_an_error_names_its_gtid_and_what_it_did_can_be_left_out(accident, new_replica, version):
    target = new_replica(version, "--gtid-strict-mode=ON")
    problem = restore(accident, target, "--until", "0-1-4,1-1-300", code=2)["problem"]
    assert "0-1-3: Error 'Duplicate entry '1' for key 'PRIMARY'' on query" in problem
    assert "leave it out with --skip 0-1-3" in problem
    assert problem.strip().count("\n") == 0
    assert target.sql("SHOW ALL SLAVES STATUS") == ()
    assert target.sql("SELECT @@slave_parallel_threads") == ((0,),)
    said = restore(accident, target, "--until", "0-1-4,1-1-300", "--skip", "0-1-3")
    assert (said["skipped"], target.position) == (["0-1-3"], {"0-1-4", "1-1-300"})
    assert target.sql("SELECT COUNT(*), MAX(id) FROM shop.t") == ((301, 1000),)


@pytest.mark.usefixtures("is_long")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_after_it_was_killed_it_goes_on(accident, new_replica, version, number):
    target = new_replica(version, *STRICT)
    command = ibbmaster("restore", str(accident), "--into", into(target), "--until", "1-1-299")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not target.sql("SHOW ALL SLAVES STATUS"):
        target.pause()
    process.send_signal(number)
    process.wait()
    if number == signal.SIGTERM:
        assert target.sql("SHOW ALL SLAVES STATUS") == ()
    restore(accident, target, "--until", "1-1-299")
    assert target.position == {"0-1-2", "1-1-299"}
    assert target.sql("SELECT COUNT(*) FROM shop.t") == ((299,),)


@pytest.mark.usefixtures("is_long")
def test_a_server_that_leaves_out_a_part_is_refused(accident, new_replica, version):
    target = new_replica(version, *STRICT, "--replicate-wild-ignore-table=shop.%")
    problem = restore(accident, target, "--until", "0-1-2", code=2)["problem"]
    assert "it leaves out a part of what it replicates: Replicate_Wild_Ignore_Table=shop.%" in problem
    assert (target.sql("SHOW ALL SLAVES STATUS"), target.position) == ((), set())


@pytest.fixture(scope="module")
def bad_target(template_of, servers_directory):
    """One server for all that is refused."""
    template = template_of(VERSIONS[0])
    with Replica(template, servers_directory / "bad", *STRICT, "--log-bin=own", "--log-slave-updates") as server:
        server.sql("CREATE USER poor")
        server.sql("RESET MASTER")
        yield server


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_restored_is_refused_in_one_line_and_changes_nothing(name, bad_target, tmp_path, capsys):
    given = BAD[name]
    for statement in given.get("sql", "").split(";"):
        if statement:
            bad_target.sql(statement)
    (tmp_path / "dump.sql").write_text("-- SET GLOBAL gtid_slave_pos='0-1-3';\n")
    before = bad_target.sql("SELECT @@gtid_slave_pos, @@slave_parallel_threads, @@server_id")
    target = given.get("into", "mysql://root@SOCKET").replace("SOCKET", quote(str(bad_target.socket), safe=""))
    options = given["options"].replace("TMP", str(tmp_path)).split(" | ")
    try:
        assert main(["restore", str(LOG / given.get("log", "")), "--into", target, *options]) == 2
        said = capsys.readouterr().err
        assert bad_target.sql("SELECT @@gtid_slave_pos, @@slave_parallel_threads, @@server_id") == before
        assert [row for row in bad_target.query("SHOW ALL SLAVES STATUS") if row["Connection_name"] != "other"] == []
    finally:
        for statement in ("STOP ALL SLAVES", "RESET SLAVE 'other' ALL", "DROP DATABASE IF EXISTS mine", "RESET MASTER"):
            with contextlib.suppress(Exception):
                bad_target.sql(statement)
        bad_target.sql("SET GLOBAL gtid_slave_pos=''")
    assert said.strip().startswith("ibbmaster: ")
    assert said.strip().count("\n") == 0
    assert re.search(given["problem"], said), said
