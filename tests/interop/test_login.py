"""How real replicas and clients log in: TLS with the automatic certificate, ed25519, and what is refused."""

import pytest
from lanes.capture import Capture
from lanes.primary import PASSWORD, USER

VERSIONS = ["10.11", "11.8"]
AUTH = ["native", "ed25519"]


@pytest.fixture
def domains(captures) -> Capture:
    return captures["10.11/domains"]


@pytest.mark.parametrize("auth", AUTH)
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_an_11_8_replica_follows_with_its_tls_defaults(host, auth, domains, new_ibb_primary, new_replica):
    """At 127.0.0.2, no address the client library takes for local, only the proof in the login's OK satisfies it."""
    replica = new_replica("11.8")

    replica.follow(new_ibb_primary(domains, "--auth", auth, host=host), ssl=None)
    replica.wait_for_gtid(domains.last_position)

    status = replica.status()
    assert (status["Master_SSL_Allowed"], status["Master_SSL_Verify_Server_Cert"]) == ("Yes", "Yes")


@pytest.mark.parametrize("auth", AUTH)
@pytest.mark.parametrize("ssl", [False, True], ids=["in clear", "TLS"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_replica_follows_with_either_account(version, ssl, auth, domains, new_ibb_primary, new_replica):
    replica = new_replica(version)

    replica.follow(new_ibb_primary(domains, "--auth", auth), ssl=ssl)

    replica.wait_for_gtid(domains.last_position)


def test_an_11_8_replica_refuses_a_primary_without_tls(domains, new_ibb_primary, new_replica):
    replica = new_replica("11.8")

    replica.follow(new_ibb_primary(domains, "--tls", "off"), ssl=None)

    assert "SSL is required, but the server does not support it" in replica.wait_for_problem()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_primary_that_requires_tls_refuses_a_login_in_clear(version, domains, new_ibb_primary, new_replica):
    replica = new_replica(version)

    replica.follow(new_ibb_primary(domains, "--tls", "required"), ssl=False)

    assert f"Access denied for user '{USER}'" in replica.wait_for_problem()


@pytest.mark.parametrize("auth", AUTH)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_wrong_password_is_refused(version, auth, domains, new_ibb_primary, new_replica):
    replica = new_replica(version)

    replica.follow(new_ibb_primary(domains, "--auth", auth), password="wrong", ssl=False)

    assert f"Access denied for user '{USER}'@'127.0.0.1' (using password: YES)" in replica.wait_for_problem()
    assert replica.status()["Last_IO_Errno"] == 1045


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_command_line_client_logs_in_with_its_tls_defaults(version, host, domains, new_ibb_primary, run_tool):
    primary = new_ibb_primary(domains, host=host)

    account = [f"--host={host}", f"--port={primary.port}", f"--user={USER}", f"--password={PASSWORD}"]
    done = run_tool(version, "mariadb", "--protocol=TCP", *account, "--batch", "-N", "-e", "SELECT @@server_id")

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
