"""The certificate a primary shows: a pair of files, or one made up at the start.

A MariaDB replica of 11.4 or later demands TLS, and accepts a self-signed certificate when
the server proves with the account's password that it is the one (dump-protocol: the OK of
the login). So a certificate that need not be installed is enough.
"""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ibbmaster.errors import ConfigurationError

VALID_FOR = timedelta(days=3650)
COMMON_NAME = "ibbmaster self-signed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What the server needs of its certificate: the context to wrap sockets with, and its DER bytes."""

    context: ssl.SSLContext
    der: bytes
    is_automatic: bool


def load_certificate(certificate_file: Path, key_file: Path) -> Certificate:
    """Read a PEM certificate (chain) and its private key.

    Raises:
        ConfigurationError: a file cannot be read, or the two do not belong together.
    """
    context = _new_context()
    try:
        context.load_cert_chain(certificate_file, key_file)
        der = ssl.PEM_cert_to_DER_cert(_first_certificate(certificate_file.read_text()))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigurationError(
            f"cannot use {certificate_file} with {key_file} as TLS certificate and key: {error}"
        ) from error
    return Certificate(context=context, der=der, is_automatic=False)


def make_certificate(*, now: datetime | None = None) -> Certificate:
    """Make a self-signed certificate for this run; its key leaves no trace on disk."""
    pem = self_signed_pem(now or datetime.now(UTC))
    context = _new_context()
    with tempfile.NamedTemporaryFile(prefix="ibbmaster-", suffix=".pem") as file:  # ssl reads keys from files only
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
    der = ssl.PEM_cert_to_DER_cert(_first_certificate(pem.decode()))
    return Certificate(context=context, der=der, is_automatic=True)


def self_signed_pem(now: datetime) -> bytes:
    """A new certificate, and its private key after it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, COMMON_NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # a replica's clock may be behind
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _first_certificate(pem: str) -> str:
    end = pem.find(ssl.PEM_FOOTER)
    return pem[pem.index(ssl.PEM_HEADER) : end + len(ssl.PEM_FOOTER)]
