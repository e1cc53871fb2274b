"""Certificates: made up for a run, or read from files."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from datetime import UTC, datetime

import pytest
from cryptography import x509

from ibbmaster.errors import ConfigurationError
from ibbmaster.server.certificate import VALID_FOR, load_certificate, make_certificate

NOW = datetime(2026, 5, 10, tzinfo=UTC)


def shown_to_a_client(context: ssl.SSLContext) -> bytes:
    """What a client sees in a handshake over a pair of sockets."""
    ours, theirs = socket.socketpair()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    served: list[ssl.SSLSocket] = []
    thread = threading.Thread(target=lambda: served.append(context.wrap_socket(ours, server_side=True)))
    thread.start()
    with client.wrap_socket(theirs) as connection:
        thread.join()
        shown = connection.getpeercert(binary_form=True)
        for one in served:
            one.close()
    return shown


def test_a_certificate_that_was_made_up_is_the_one_that_clients_see():
    certificate = make_certificate(now=NOW)
    read = x509.load_der_x509_certificate(certificate.der)

    assert certificate.is_automatic
    assert shown_to_a_client(certificate.context) == certificate.der
    assert read.not_valid_before_utc < NOW < read.not_valid_after_utc == NOW + VALID_FOR
    assert read.subject == read.issuer


def test_each_run_has_another_key():
    ders = {hashlib.sha256(make_certificate().der).digest() for _ in range(3)}
    assert len(ders) == 3


@pytest.fixture
def files(tmp_path):
    """A certificate and a key, and a second pair."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    for name in ("one", "two"):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(7)
            .not_valid_before(NOW)
            .not_valid_after(NOW + VALID_FOR)
            .sign(key, hashes.SHA256())
        )
        (tmp_path / f"{name}.pem").write_bytes(b"a comment\n" + certificate.public_bytes(serialization.Encoding.PEM))
        (tmp_path / f"{name}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    return tmp_path


def test_a_certificate_is_read_from_files(files):
    certificate = load_certificate(files / "one.pem", files / "one.key")

    assert not certificate.is_automatic
    assert shown_to_a_client(certificate.context) == certificate.der
    assert x509.load_der_x509_certificate(certificate.der).serial_number == 7


@pytest.mark.parametrize(("pem", "key"), [("one.pem", "two.key"), ("none.pem", "one.key"), ("one.key", "one.key")])
def test_files_that_do_not_belong_together_are_named(files, pem, key):
    with pytest.raises(ConfigurationError, match=f"cannot use .*{pem} with .*{key} as TLS certificate and key"):
        load_certificate(files / pem, files / key)
