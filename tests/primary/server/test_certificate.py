import socket
import threading
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from OpenSSL import SSL

from ibbmaster.errors import ConfigurationError
from ibbmaster.primary.server.certificate import VALID_FOR, load_certificate, make_certificate, self_signed_pem

NOW = datetime(2026, 5, 10, tzinfo=UTC)


def shown_to_a_client(context: SSL.Context) -> list[bytes]:
    ours, theirs = socket.socketpair()
    server = SSL.Connection(context, ours)
    server.set_accept_state()
    client = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), theirs)
    client.set_connect_state()
    thread = threading.Thread(target=server.do_handshake)
    thread.start()
    with ours, theirs:
        client.do_handshake()
        thread.join()
        chain = client.get_peer_cert_chain(as_cryptography=True)
    return [one.public_bytes(serialization.Encoding.DER) for one in chain]


def test_a_certificate_that_was_made_up_is_the_one_that_clients_see():
    certificate = make_certificate(now=NOW)
    read = x509.load_der_x509_certificate(certificate.der)

    assert certificate.is_automatic
    assert shown_to_a_client(certificate.context) == [certificate.der]
    assert read.not_valid_before_utc < NOW < read.not_valid_after_utc == NOW + VALID_FOR
    assert read.subject == read.issuer


def test_each_run_has_another_key():
    assert len({make_certificate().der for _ in range(3)}) == 3


@pytest.fixture
def files(tmp_path):
    for name in ("one", "two"):
        certificate, begin, key = self_signed_pem(NOW).partition(b"-----BEGIN PRIVATE KEY")
        (tmp_path / f"{name}.pem").write_bytes(b"a comment\n" + certificate)
        (tmp_path / f"{name}.key").write_bytes(begin + key)
    return tmp_path


def der_of(path):
    return x509.load_pem_x509_certificate(path.read_bytes()).public_bytes(serialization.Encoding.DER)


def test_a_certificate_is_read_from_files(files):
    certificate = load_certificate(files / "one.pem", files / "one.key")

    assert not certificate.is_automatic
    assert shown_to_a_client(certificate.context) == [certificate.der] == [der_of(files / "one.pem")]


@pytest.mark.parametrize(("pem", "key"), [("one.pem", "two.key"), ("none.pem", "one.key"), ("one.key", "one.key")])
def test_files_that_do_not_belong_together_are_named(files, pem, key):
    with pytest.raises(ConfigurationError, match=f"cannot use .*{pem} with .*{key} as TLS certificate and key"):
        load_certificate(files / pem, files / key)


def test_those_who_signed_it_are_shown_too(files):
    chain = files / "chain.pem"
    chain.write_bytes((files / "one.pem").read_bytes() + (files / "two.pem").read_bytes())
    shown = shown_to_a_client(load_certificate(chain, files / "one.key").context)
    assert shown == [der_of(files / "one.pem"), der_of(files / "two.pem")]


@pytest.mark.parametrize("names", [["one.pem", "one.key"], ["one.key", "one.pem"]], ids=" ".join)
def test_one_file_may_hold_both(files, names):
    both = files / "both.pem"
    both.write_bytes(b"".join((files / name).read_bytes() for name in names))
    certificate = load_certificate(both, both)

    assert shown_to_a_client(certificate.context) == [certificate.der]


def test_a_key_that_a_password_locks_is_named(files):
    (files / "locked.key").write_bytes(
        serialization.load_pem_private_key((files / "one.key").read_bytes(), None).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"it")
        )
    )
    with pytest.raises(ConfigurationError, match=r"locked.key as TLS certificate and key: .*[Pp]assword"):
        load_certificate(files / "one.pem", files / "locked.key")
