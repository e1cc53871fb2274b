"""Statements that administrate: the `mariadb` client hears the same of a real primary and of ours, and a real replica
loses nothing by them.
"""

import re

from lanes.primary import login_options
from lanes.sql import run

import ibbmaster

ACCOUNTS = {
    "reader": "REPLICATION SLAVE",
    "super": "SUPER",
    "half": "RELOAD, REPLICATION MASTER ADMIN, BINLOG MONITOR",
    "boss": "RELOAD, REPLICATION MASTER ADMIN, BINLOG ADMIN, BINLOG MONITOR",
}
#: What every account but the last may do in a part; `half` shows where ours asks for more: BINLOG ADMIN.
DENIED = [
    "PURGE BINARY LOGS TO 'nothing'",
    "PURGE MASTER LOGS TO 'binlog.000001'",
    "PURGE BINARY LOGS BEFORE '2001-01-01'",
    "SHUTDOWN",
    "SHUTDOWN WAIT FOR ALL SLAVES",
]
DENIED_WITHOUT_RELOAD = ["FLUSH BINARY LOGS", "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(7)", "RESET MASTER"]
SET_STATE = "SET GLOBAL gtid_binlog_state = '0-1-5'"
STATE = "SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_binlog_pos"
ON_AN_EMPTY_LOG = [
    "RESET MASTER",
    *("SET GLOBAL gtid_binlog_state = " + value for value in ("'rubbish'", "NULL", "5", "1.5", "DEFAULT", "'0-1-5,'")),
    "SET gtid_binlog_state = '0-1-5'",
    "SET GLOBAL gtid_binlog_state = ''",
    "SET GLOBAL gtid_binlog_state = '0-1-5,0-1-6'",
    STATE,
    "SET GLOBAL gtid_binlog_state = NULL",
    SET_STATE,
    "RESET MASTER",
    "SET GLOBAL gtid_binlog_state = '0-1-5,1-2-3,0-2-4'",
    STATE,
    "SET @@GLOBAL.gtid_binlog_state = 'rubbish'",
    "FLUSH BINARY LOGS",
    "FLUSH LOGS",
    SET_STATE,
    "RESET MASTER",
    STATE,
]
LOGGED = ("CREATE DATABASE zero", "SET gtid_domain_id = 7", "CREATE DATABASE seven")
ON_A_LOG = [
    STATE,
    SET_STATE,
    "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(7)",
    "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(99)",
    "FLUSH LOCAL BINARY LOGS DELETE_DOMAIN_ID=()",
    "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(7,99)",
    *(f"FLUSH BINARY LOGS DELETE_DOMAIN_ID={ids}" for ids in ("(x)", "(4294967296)", "(-1)", "7", "(7,)")),
    "PURGE BINARY LOGS TO 'binlog.000009'",
    "PURGE BINARY LOGS TO './binlog.000001'",
    "PURGE BINARY LOGS TO ''",
    "PURGE BINARY LOGS TO 'binlog.000001'",
    "PURGE BINARY LOGS TO 'binlog.000003'",
    "FLUSH BINARY LOGS",
    "PURGE BINARY LOGS TO 'binlog.000003'",
    "PURGE BINARY LOGS TO 'binlog.000001'",
    "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(7,98)",
    STATE,
    *("PURGE BINARY LOGS BEFORE " + at for at in ("'2001-01-01'", "'rubbish'", "'2099'", "20", "nothing", "@@nothing")),
    "PURGE BINARY LOGS BEFORE NOW() - INTERVAL 3 DAY",
    "PURGE BINARY LOGS BEFORE DATE_SUB(NOW(), INTERVAL 3 HOUR)",
    "PURGE BINARY LOGS BEFORE '2099-01-01 00:00:00'",
    *(
        "PURGE BINARY LOGS",
        "PURGE BINARY LOGS TO",
        "PURGE BINARY LOGS TO x",
        "PURGE LOGS TO 'x'",
        "RESET MASTER TO 'x'",
    ),
    *("SHUTDOWN NOW", "SHUTDOWN WAIT", "SHUTDOWN WAIT FOR ALL", "SHUTDOWN WAIT FOR ALL OTHERS"),
]


def ours_named(text):
    """A real server's names of files count from 1."""
    return re.sub(r"binlog\.(\d{6})", lambda match: f"binlog-{int(match[1]) - 1:06}.ibb", text)


def heard(run_tool, version, primary, user, statements):
    account = {"--user": user, "--password": "pw", "--host": "127.0.0.1", "--port": primary.port}
    options = [*(f"{name}={value}" for name, value in account.items()), "--skip-ssl"]
    found = []
    for statement in statements:
        done = run_tool(version, "mariadb", *options, "--show-warnings", "--batch", "-N", "-e", statement)
        assert not done.stderr.startswith("ERROR 20"), done.stderr  # the client's own
        found.append((statement, done.returncode, done.stdout, done.stderr))
    return found


def test_the_client_hears_what_a_real_primary_says(version, new_server, run_tool, tmp_path):
    real = new_server(version, "--server-id=1")
    sections = []
    for user, grant in ACCOUNTS.items():
        run(real, f"CREATE USER {user}@'%' IDENTIFIED BY 'pw'", f"GRANT {grant} ON *.* TO {user}@'%'")
        sections.append(f"[{user}]\npassword = pw\ngrant = {grant}\n")
    (accounts := tmp_path / "accounts").write_text("".join(sections))
    accounts.chmod(0o600)
    log = ibbmaster.create(tmp_path / "log", max_file_bytes="256K")
    ((claimed,),) = real.sql("SELECT VERSION()")
    with log, ibbmaster.serve(log, user="boss", accounts=accounts, server_version=claimed, tls="off") as ours:

        def compare(user, statements):
            expected = heard(run_tool, version, real, user, statements)
            for one, other in zip(
                heard(run_tool, version, ours, user, map(ours_named, statements)), expected, strict=True
            ):
                said = [ours_named(part) if isinstance(part, str) else part for part in other]
                if version == "10.11":  # which has no such note
                    one = (*one[:2], re.sub(r"Note \(Code 1375\).*\n", "", one[2]), one[3])
                assert list(one) == said

        compare("boss", ON_AN_EMPTY_LOG)
        for user in ("reader", "super", "half"):
            asked = DENIED if user != "super" else ["SHUTDOWN"] if version == "10.11" else DENIED
            compare(user, asked + (DENIED_WITHOUT_RELOAD if user != "half" else []))
        compare("reader", [SET_STATE])
        for statement in (*DENIED_WITHOUT_RELOAD, SET_STATE):
            ((*_, said),) = heard(run_tool, version, ours, "half", [statement])
            assert ("1227" in said, "BINLOG ADMIN privilege" in said) == (True, True)
        run(real, *LOGGED)
        log.append("0-1-1", "CREATE DATABASE zero")
        log.append("7-1-1", "CREATE DATABASE seven")
        compare("boss", ON_A_LOG)


# As mysql-test/suite/binlog_in_engine/rpl_shutdown_wait_slaves.test
def test_a_real_replica_goes_on_through_purges_and_has_everything_after_a_shutdown_that_waits(
    version, new_replica, run_tool, tmp_path
):
    with ibbmaster.create(tmp_path / "log", max_file_bytes="256K", durability="write") as log:
        log.append("0-1-1", "CREATE DATABASE shop")
        log.append("0-1-2", "CREATE TABLE shop.t (id INT PRIMARY KEY, v TEXT) ENGINE=InnoDB")
        log.sync()
        with ibbmaster.serve(log, password="pw", tls="off", grant="ALL") as primary:
            administer = ["--protocol=TCP", "--skip-ssl", *login_options(primary), "--batch", "-N", "-e"]
            replica = new_replica(version)
            replica.follow(primary, ssl=False)

            def say(statement):
                done = run_tool(version, "mariadb", *administer, statement)
                assert (done.returncode, done.stderr) == (0, "")

            for turn in range(4):
                for number in range(100 * turn + 3, 100 * turn + 103):
                    log.append(f"0-1-{number}", f"INSERT INTO shop.t VALUES ({number}, '{'x' * 5000}')")
                say("FLUSH BINARY LOGS; PURGE BINARY LOGS BEFORE '2099-01-01'")
            done = run_tool(version, "mariadb-admin", *administer[:-3], "--wait-for-all-slaves", "shutdown")
            assert (done.returncode, done.stderr) == (0, "")
            replica.wait_for_gtid("0-1-402", tolerates_lost_connections=True)
            assert replica.sql("SELECT COUNT(*), SUM(id) FROM shop.t") == ((400, sum(range(3, 403))),)
            assert len(log.files) < 10
