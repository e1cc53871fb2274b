import ssl

import pymysql
import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit import FixturePrimary
from ibbmaster.testkit.certificates import CERTIFICATES, made_certificate
from ibbmaster.testkit.scenario import parse_scenario
from tests.tap import ask, connect

REASONS = {
    "trusted": None,
    "expired": "certificate has expired",
    "not-yet-valid": "certificate is not yet valid",
    "wrong-host": "IP address mismatch, certificate is not valid for '127.0.0.1'",
    "unknown-authority": "unable to get local issuer certificate",
}


def log_in(primary, authority_file):
    context = ssl.create_default_context(cafile=authority_file)
    if hasattr(ssl, "VERIFY_X509_STRICT"):
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    with connect(primary, ssl_disabled=False, ssl=context) as connection:
        return ask(connection, "SHOW STATUS LIKE 'Ssl_cipher'")[0][1]


def refusal(primary):
    with pytest.raises(pymysql.err.OperationalError) as caught:
        log_in(primary, primary.authority_file)
    error = caught.value.__cause__ or caught.value.__context__
    assert isinstance(error, ssl.SSLCertVerificationError), caught.value
    return error.verify_message


@pytest.mark.parametrize("tls", CERTIFICATES)
def test_a_client_that_looks_finds_what_is_wrong_and_one_that_does_not_logs_in(tls):
    with FixturePrimary(tls=tls) as primary:
        if tls == "trusted":
            assert log_in(primary, primary.authority_file)
        else:
            assert REASONS[tls] in refusal(primary)
        with connect(primary, ssl_disabled=False, ssl={"ssl": True}) as connection:
            assert connection.get_server_info()


def test_a_certificate_is_made_once_and_its_file_goes_with_its_primary():
    assert made_certificate("expired") is made_certificate("expired")
    with FixturePrimary(tls="trusted") as primary:
        path = primary.authority_file
        assert path.read_bytes().startswith(b"-----BEGIN CERTIFICATE-----")
    assert not path.exists()


def test_it_keeps_its_certificate_behind_a_restart():
    with FixturePrimary(tls="wrong-host") as primary:
        primary.stop()
        primary.start()
        assert REASONS["wrong-host"] in refusal(primary)


def test_a_scenario_names_one_and_another_word_is_refused():
    with parse_scenario('[primary]\ntls = "expired"').serving() as primary:
        assert refusal(primary) == REASONS["expired"]
    with pytest.raises(ConfigurationError, match="tls 'stale': expected one of auto, off, required, trusted, expired"):
        FixturePrimary(tls="stale")
