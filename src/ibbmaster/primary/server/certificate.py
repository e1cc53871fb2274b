"""The certificate of a primary: from two files, or self-signed at the start. A MariaDB replica of 11.4 or later demands
TLS, and accepts a self-signed certificate if the server proves itself with the account's password in the OK of the
login: no certificate has to be installed.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.errors import ConfigurationError

if TYPE_CHECKING:
    from OpenSSL.SSL import Context

VALID_FOR = timedelta(days=3650)
COMMON_NAME = "ibbmaster self-signed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The context of connections, and the certificate's DER bytes."""

    context: Context
    der: bytes
    is_automatic: bool


def load_certificate(certificate_file: Path, key_file: Path) -> Certificate:
    """A PEM certificate (chain) and its key. Raises ConfigurationError: unreadable, or they do not belong together."""
    try:
        return parse_certificate(certificate_file.read_bytes(), key_file.read_bytes(), is_automatic=False)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot use {certificate_file} with {key_file} as TLS certificate and key: {error}"
        ) from error


def make_certificate(*, now: datetime | None = None) -> Certificate:
    """The key is never on disk."""
    pem = self_signed_pem(now or datetime.now(UTC))
    return parse_certificate(pem, pem, is_automatic=True)


def self_signed_pem(now: datetime) -> bytes:
    """Followed by its private key."""
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


def parse_certificate(certificates: bytes, key: bytes, *, is_automatic: bool) -> Certificate:
    """Read PEM: the server's certificate, its signers', and its private key. Raises ValueError: a part cannot be read,
    a password locks the key, or they do not belong together.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.x509 import load_pem_x509_certificates
    from OpenSSL.SSL import Error

    from .tls_stream import new_context, reason_of

    context = new_context()
    try:
        own, *others = load_pem_x509_certificates(certificates)
        context.use_certificate(own)
        for other in others:
            context.add_extra_chain_cert(other)
        private_key = serialization.load_pem_private_key(key, None)
        context.use_privatekey(private_key)  # type: ignore[arg-type]  # of a kind that TLS has no use for: TypeError
        context.check_privatekey()
    except Error as error:
        raise ValueError(reason_of(error)) from error
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(str(error)) from error
    return Certificate(context=context, der=own.public_bytes(serialization.Encoding.DER), is_automatic=is_automatic)
