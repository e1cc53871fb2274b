"""How real replicas and clients log in: TLS with the automatic certificate, ed25519, and what is refused; and what an
operator sees who asks with the `mariadb` client.
"""

import re
from collections.abc import Callable

import pymysql
import pytest
from lanes.capture import Capture
from lanes.primary import USER, IbbPrimary, Primary, login_options
from lanes.replica import Replica

import ibbmaster
from tests.case_table import data_beside

HOSTS = ["127.0.0.1", "127.0.0.2"]
AUTH = ["native", "ed25519"]


@pytest.fixture
def domains(captures) -> Capture:
    return captures["10.11/domains"]


@pytest.fixture
def expect_followed(domains) -> Callable[..., None]:
    """A fresh replica, or one that has followed before, follows a primary from the beginning to its end."""

    def follow(replica: Replica, primary: IbbPrimary, **given: object) -> None:
        replica.begin_anew()
        replica.follow(primary, **given)
        replica.wait_for_gtid(domains.last_position)

    return follow


@pytest.mark.parametrize("auth", AUTH)
def test_an_11_8_replica_follows_with_its_tls_defaults(auth, domains, new_ibb_primary, new_replica, expect_followed):
    """At 127.0.0.2, no address the client library takes for local, only the proof in the login's OK satisfies it."""
    replica = new_replica("11.8")

    for host in HOSTS:
        expect_followed(replica, new_ibb_primary(domains, "--auth", auth, host=host), ssl=None)

        status = replica.status()
        assert (status["Master_SSL_Allowed"], status["Master_SSL_Verify_Server_Cert"]) == ("Yes", "Yes")


@pytest.mark.parametrize("auth", AUTH)
def test_a_replica_follows_with_either_account_and_no_wrong_password(
    version, auth, domains, new_ibb_primary, new_replica, expect_followed
):
    replica, primary = new_replica(version), new_ibb_primary(domains, "--auth", auth)
    for ssl in (False, True):
        expect_followed(replica, primary, ssl=ssl)
    replica.begin_anew()

    replica.follow(primary, password="wrong", ssl=False)

    assert f"Access denied for user '{USER}'@'127.0.0.1' (using password: YES)" in replica.wait_for_problem()
    assert replica.status()["Last_IO_Errno"] == 1045


def test_an_11_8_replica_refuses_a_primary_without_tls(domains, new_ibb_primary, new_replica):
    replica = new_replica("11.8")

    replica.follow(new_ibb_primary(domains, "--tls", "off"), ssl=None)

    assert "SSL is required, but the server does not support it" in replica.wait_for_problem()


def test_a_primary_that_requires_tls_refuses_a_login_in_clear(version, domains, new_ibb_primary, new_replica):
    replica = new_replica(version)

    replica.follow(new_ibb_primary(domains, "--tls", "required"), ssl=False)

    assert f"Access denied for user '{USER}'" in replica.wait_for_problem()


@pytest.mark.parametrize("host", HOSTS)
def test_the_command_line_client_logs_in_with_its_tls_defaults(version, host, domains, new_ibb_primary, run_tool):
    account = login_options(new_ibb_primary(domains, host=host))

    done = run_tool(version, "mariadb", "--protocol=TCP", *account, "--batch", "-N", "-e", "SELECT @@server_id")

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


_DATA = data_beside(__file__)
ANSWERS = _DATA["answers"]  # statement: the answer in --batch form; a dot stands for anything


def test_the_client_prints_the_answers(version, captures, new_ibb_primary, run_tool):
    options = ["--protocol=TCP", *login_options(new_ibb_primary(captures["10.11/domains"])), "--batch", "-e"]
    for statement, lines in ANSWERS.items():
        done = run_tool(version, "mariadb", *options, statement)

        assert (done.returncode, done.stderr) == (0, ""), statement
        printed = [line.split("\t") for line in done.stdout.splitlines()]
        expected = [line.split("\t") for line in lines]
        assert [len(line) for line in printed] == [len(line) for line in expected], statement
        for got, wanted in zip(printed, expected, strict=True):
            assert all(one == other or other == "." for one, other in zip(got, wanted, strict=True)), (statement, got)
    done = run_tool(version, "mariadb", *options, "DROP TABLE everything")
    assert done.returncode == 1
    assert "\nERROR 1290 (HY000) at line 1: " in done.stderr


ACCOUNTS = {  # account: where it may log in from, and whether in clear
    "hosted": ("127.0.0.2", ""),
    "patterned": ("127.0.%.2", ""),
    "secured": ("127.0.0.2", "REQUIRE SSL"),
}
LOGINS = [("hosted", "x"), ("hosted", "y"), ("patterned", "x"), ("secured", "x"), ("nobody", "x")]


def _came(primary: Primary, user: str, password: str, address: str) -> object:
    account = {"user": user, "password": password, "bind_address": address, "ssl_disabled": True}
    try:
        pymysql.connect(host="127.0.0.1", port=primary.port, **account).close()
    except pymysql.err.MySQLError as error:
        return error.args
    return "let in"


def test_hashes_hosts_and_required_tls_of_a_server_mean_the_same_here(
    version, new_server, ibb_directory, domains, tmp_path
):
    real = new_server(version, "--skip-name-resolve")
    sections = []
    for user, (host, required) in ACCOUNTS.items():
        real.sql(f"CREATE USER {user}@'{host}' IDENTIFIED BY 'x' {required}")
        ((shown,),) = real.sql(f"SHOW CREATE USER {user}@'{host}'")
        stored, tls = re.search(r"'(\*\w+)'", shown)[1], "on" if required else "off"
        sections.append(f"[{user}]\npassword-hash = {stored}\nhosts = {host}\nrequire-tls = {tls}\n")
    real.sql("DROP USER repl@'%'")
    real.sql("FLUSH PRIVILEGES")
    (accounts := tmp_path / "accounts").write_text("".join(sections))
    accounts.chmod(0o600)

    with ibbmaster.serve(ibb_directory(domains), user="hosted", accounts=accounts) as ours:
        for address in ("127.0.0.2", "127.0.0.3", "127.0.9.2"):
            for user, password in LOGINS:
                assert _came(ours, user, password, address) == _came(real, user, password, address), (user, address)
        assert _came(ours, "patterned", "x", "127.0.9.2") == "let in"
        assert _came(ours, "nobody", "x", "127.0.0.3")[0] == 1130
