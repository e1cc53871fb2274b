"""Proving a password without sending it. Formulas: protocol/wire/authentication.md.

A server keeps a verifier per account, not the password. No `repr` and no error shows a secret.
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
PROOF_MARK = b"\x01"  # first byte of the message of a login's OK if it is a proof


class Verifier(Protocol):
    """The knowledge of one plugin about a password, and its judgement of an answer."""

    @property
    def plugin_name(self) -> str:
        """The client's plugin for these answers."""

    @property
    def password_hash(self) -> bytes:
        """The secret of client and server in the proof of the certificate."""

    def verify(self, nonce: bytes, answer: bytes) -> bool:
        """Whether the answer proves the password for this nonce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeVerifier:
    """mysql_native_password: SHA-1 of SHA-1 of the password; empty for an empty password."""

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
    """client_ed25519: the public key of the password."""

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
    """A user who may log in, and how."""

    user: str
    verifier: Verifier
    has_password: bool
    requires_tls: bool = False


def make_account(user: str, password: str, *, plugin: str = "native", requires_tls: bool = False) -> Account:
    """An account for a password in clear, which it does not keep; `plugin` is "native" or "ed25519". Raises
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
    """A server's secret for mysql_native_password: 20 bytes, or none for an empty password."""
    return hashlib.sha1(hashlib.sha1(password.encode()).digest()).digest() if password else b""


def ed25519_public_key(password: str) -> bytes:
    """A server's secret for client_ed25519: the public key (RFC 8032, 5.1.5) for the password, of any length, in place
    of the 32 random bytes. Raises ConfigurationError: PyNaCl is not installed.
    Source: MariaDB 12.3, plugin/auth_ed25519/server_ed25519.c, compute_password_digest()."""
    return _multiply_base(_ed25519_scalar(password))


def certificate_proof(account: Account, seed: bytes, fingerprint: bytes) -> bytes:
    """The message of a login's OK that lets a client trust a self-signed certificate; empty without a password.

    `fingerprint` is the SHA-256 of the certificate, `seed` the greeting's, whichever plugin was used: the client keeps
    it, and only mysql_native_password replaces it.

    Source: MariaDB 12.3, sql_acl.cc, acl_authenticate(), as the client checks it: MariaDB Connector/C,
    plugins/auth/my_auth.c, run_plugin_auth(), and ed25519.c, auth_ed25519_hash().
    """
    if not account.has_password:
        return b""
    digest = hashlib.sha256(account.verifier.password_hash + seed + fingerprint).hexdigest()
    return PROOF_MARK + digest.upper().encode()


def _xor(one: bytes, other: bytes) -> bytes:
    assert len(one) == len(other), (len(one), len(other))
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(len(one), "little")


def _ed25519_scalar(password: str) -> bytes:
    scalar = bytearray(hashlib.sha512(password.encode()).digest()[:32])
    scalar[0] &= 0b1111_1000
    scalar[31] = scalar[31] & 0b0111_1111 | 0b0100_0000
    return bytes(scalar)


def _multiply_base(scalar: bytes) -> bytes:
    with needed_for("ed25519"):
        from nacl.bindings import crypto_scalarmult_ed25519_base_noclamp
    return bytes(crypto_scalarmult_ed25519_base_noclamp(scalar))
