"""Certificates of primaries of tests: a good one, and others that a client has to refuse, each for one reason."""

from __future__ import annotations

import functools
import inspect
import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ibbmaster.primary.server.certificate import Certificate, parse_certificate

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate as Signed
    from cryptography.x509 import GeneralName

DAY = timedelta(days=1)
YEAR = 365 * DAY
OTHER_HOST = "elsewhere.example"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    meaning: str
    begins: timedelta = -DAY
    ends: timedelta = YEAR
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
    is_of_authority: bool = True  # of the one whose certificate clients are given


#: What `tls` of a primary of tests may say besides the options of serving.
CERTIFICATES = {
    "trusted": _Said(meaning="nothing is wrong with it"),
    "expired": _Said(meaning="it was good until yesterday", begins=-10 * DAY, ends=-DAY),
    "not-yet-valid": _Said(meaning="it is good from tomorrow on", begins=DAY),
    "wrong-host": _Said(meaning=f"it is that of `{OTHER_HOST}`", hosts=(OTHER_HOST,)),
    "unknown-authority": _Said(
        meaning="somebody else has signed it, under the authority's name", is_of_authority=False
    ),
}


@functools.cache
def made_certificate(name: str) -> Certificate:
    from cryptography.hazmat.primitives import serialization

    says = CERTIFICATES[name]
    key, signed = _signed("primary of tests", says, by=_authority(is_known=says.is_of_authority))
    return parse_certificate(
        signed.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        is_automatic=False,
    )


def authority_pem() -> bytes:
    """The certificate of the authority for clients to trust; each process has its own."""
    from cryptography.hazmat.primitives import serialization

    return _authority(is_known=True)[1].public_bytes(serialization.Encoding.PEM)


@functools.cache
def _authority(*, is_known: bool) -> tuple[EllipticCurvePrivateKey, Signed]:
    return _signed("authority of tests", _Said(meaning="", is_of_authority=is_known), by=None)


def _signed(
    name: str, says: _Said, *, by: tuple[EllipticCurvePrivateKey, Signed] | None
) -> tuple[EllipticCurvePrivateKey, Signed]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    signer, issuer = (key, subject) if by is None else (by[0], by[1].subject)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + says.begins)
        .not_valid_after(now + says.ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    if by is None:
        uses = dict.fromkeys(inspect.signature(x509.KeyUsage).parameters, False)
        usage = x509.KeyUsage(**{**uses, "key_cert_sign": True})
        return key, builder.add_extension(usage, critical=True).sign(signer, hashes.SHA256())
    names = x509.SubjectAlternativeName([_alternative(host) for host in says.hosts])
    signer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = builder.add_extension(names, critical=False).add_extension(signer_id, critical=False)
    return key, builder.sign(signer, hashes.SHA256())


def _alternative(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
