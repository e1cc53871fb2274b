"""Proving a password without sending it. Formulas: protocol/wire/authentication.md.

A server keeps a verifier per account, not the password. Nothing here shows a secret in a
`repr` or in the text of an error.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from ibbmaster.errors import ConfigurationError
from ibbmaster.extras import needed_for
from ibbmaster.wire.handshake import NATIVE_PASSWORD

ED25519 = "client_ed25519"
ED25519_NONCE_SIZE = 32  # bytes
ED25519_SIGNATURE_SIZE = 64
PROOF_MARK = b"\x01"  # what the message of a login's OK begins with if it is a proof


class Verifier(Protocol):
    """What one plugin knows of a password, and how it judges an answer."""

    @property
    def plugin_name(self) -> str:
        """The client's plugin that gives the answers."""

    @property
    def password_hash(self) -> bytes:
        """What client and server both know; the proof of the certificate is made with it."""

    def verify(self, nonce: bytes, answer: bytes) -> bool:
        """Whether the answer proves the password for this nonce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeVerifier:
    """mysql_native_password: SHA-1 of SHA-1 of the password; of an empty password nothing."""

    plugin_name: ClassVar[str] = NATIVE_PASSWORD
    password_hash: bytes = field(repr=False)

    def verify(self, nonce: bytes, answer: bytes) -> bool:
        """Whether the answer proves the password for this seed of 20 bytes. Source: MariaDB 12.3, password.c,
        check_scramble()."""
        if not self.password_hash:
            return not answer
        if len(answer) != len(self.password_hash):
            return False
        mask = hashlib.sha1(nonce + self.password_hash).digest()
        return hmac.compare_digest(hashlib.sha1(_xor(answer, mask)).digest(), self.password_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ed25519Verifier:
    """client_ed25519: the public key that belongs to the password."""

    plugin_name: ClassVar[str] = ED25519
    password_hash: bytes = field(repr=False)

    def verify(self, nonce: bytes, answer: bytes) -> bool:
        """Whether the answer is the signature of these 32 bytes. Source: MariaDB 12.3,
        plugin/auth_ed25519/server_ed25519.c, auth()."""
        from nacl.exceptions import BadSignatureError
        from nacl.signing import VerifyKey

        if len(answer) != ED25519_SIGNATURE_SIZE:
            return False
        try:
            VerifyKey(self.password_hash).verify(nonce, answer)
        except BadSignatureError:
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who may log in, and how."""

    user: str
    verifier: Verifier
    has_password: bool
    requires_tls: bool = False


def make_account(user: str, password: str, *, plugin: str = "native", requires_tls: bool = False) -> Account:
    """An account for a password in clear, which is not kept; `plugin` is "native" or "ed25519". Raises
    ConfigurationError: another plugin, ed25519 without PyNaCl, or a user name with NUL."""
    verifier: Verifier
    match plugin:
        case "native":
            verifier = NativeVerifier(password_hash=native_password_hash(password))
        case "ed25519":
            verifier = Ed25519Verifier(password_hash=ed25519_public_key(password))
        case _:
            raise ConfigurationError(f"there is no authentication plugin {plugin!r}: choose native or ed25519")
    if "\x00" in user:
        raise ConfigurationError("a user name cannot hold NUL")
    return Account(user=user, verifier=verifier, has_password=bool(password), requires_tls=requires_tls)


def native_password_hash(password: str) -> bytes:
    """What a server keeps for mysql_native_password: 20 bytes, or none for an empty password."""
    return hashlib.sha1(hashlib.sha1(password.encode()).digest()).digest() if password else b""


def ed25519_public_key(password: str) -> bytes:
    """What a server keeps for client_ed25519: the 32 bytes of the password's public key.

    It is Ed25519 (RFC 8032, 5.1.5) with the password, of whatever length, in place of the 32 random bytes.

    Raises ConfigurationError: PyNaCl is not installed.

    Source: MariaDB 12.3, plugin/auth_ed25519/server_ed25519.c, compute_password_digest().
    """
    return _multiply_base(_ed25519_secrets(password)[0])


def certificate_proof(account: Account, seed: bytes, certificate_der: bytes) -> bytes:
    """The message of a login's OK by which a client trusts a self-signed certificate; empty without a password.

    `seed` is the greeting's, whichever plugin was used: the client keeps it, and no other plugin than
    mysql_native_password replaces it.

    Source: MariaDB 12.3, sql_acl.cc, acl_authenticate(), as the client checks it: MariaDB Connector/C,
    plugins/auth/my_auth.c, run_plugin_auth(), and ed25519.c, auth_ed25519_hash().
    """
    return fingerprint_proof(account, seed, hashlib.sha256(certificate_der).digest())


def fingerprint_proof(account: Account, seed: bytes, fingerprint: bytes) -> bytes:
    """`certificate_proof` for a certificate whose SHA-256 is known."""
    if not account.has_password:
        return b""
    digest = hashlib.sha256(account.verifier.password_hash + seed + fingerprint).hexdigest()
    return PROOF_MARK + digest.upper().encode()


def _xor(one: bytes, other: bytes) -> bytes:
    assert len(one) == len(other), (len(one), len(other))
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(len(one), "little")


def _ed25519_secrets(password: str) -> tuple[bytes, bytes]:
    digest = hashlib.sha512(password.encode()).digest()
    scalar = bytearray(digest[:32])
    scalar[0] &= 0b1111_1000
    scalar[31] = scalar[31] & 0b0111_1111 | 0b0100_0000
    return bytes(scalar), digest[32:]


def _multiply_base(scalar: bytes) -> bytes:
    with needed_for("ed25519"):
        from nacl.bindings import crypto_scalarmult_ed25519_base_noclamp
    return bytes(crypto_scalarmult_ed25519_base_noclamp(scalar))
