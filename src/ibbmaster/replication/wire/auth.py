"""Proving a password without sending it. Formulas: protocol/wire/authentication.md. No `repr` and no error shows a
secret."""

import hashlib
import hmac
from dataclasses import dataclass, field

from ibbmaster.errors import ConfigurationError
from .handshake import NATIVE_PASSWORD

ED25519 = "client_ed25519"
ED25519_SIGNATURE_SIZE = 64
PROOF_MARK = b"\x01"  # first byte of the message of a login's OK if it is a proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user, and the secret of a client's plugin: for mysql_native_password SHA-1 of SHA-1 of the password, empty
    without one; for client_ed25519 the public key of the password."""

    user: str
    plugin_name: str
    password_hash: bytes = field(repr=False)
    has_password: bool
    requires_tls: bool = False

    def verify(self, nonce: bytes, answer: bytes) -> bool:
        """Whether the answer proves the password for this nonce: the seed of 20 bytes, or 32 bytes for client_ed25519.
        Source: MariaDB 12.3, password.c, check_scramble(); plugin/auth_ed25519/server_ed25519.c, auth()."""
        if self.plugin_name == ED25519:
            return _is_signature(self.password_hash, nonce, answer)
        if len(answer) != len(self.password_hash):
            return False
        if not self.password_hash:
            return True
        mask = hashlib.sha1(nonce + self.password_hash).digest()
        return hmac.compare_digest(hashlib.sha1(_xor(answer, mask)).digest(), self.password_hash)


def make_account(user: str, password: str, *, plugin: str = "native", requires_tls: bool = False) -> Account:
    """From a password in clear, which it does not keep. Raises ConfigurationError: `plugin` is neither "native" nor
    "ed25519", ed25519 lacks PyNaCl, or a user name has NUL.
    """
    match plugin:
        case "native":
            name, password_hash = NATIVE_PASSWORD, native_password_hash(password)
        case "ed25519":
            name, password_hash = ED25519, ed25519_public_key(password)
        case _:
            raise ConfigurationError(f"there is no authentication plugin {plugin!r}: choose native or ed25519")
    if "\x00" in user:
        raise ConfigurationError("a user name cannot hold NUL")
    has_password = bool(password)
    return Account(
        user=user, plugin_name=name, password_hash=password_hash, has_password=has_password, requires_tls=requires_tls
    )


def native_password_hash(password: str) -> bytes:
    """20 bytes, or none for an empty password."""
    return hashlib.sha1(hashlib.sha1(password.encode()).digest()).digest() if password else b""


def ed25519_public_key(password: str) -> bytes:
    """For the password (RFC 8032, 5.1.5), of any length, in place of the 32 random bytes. Raises ConfigurationError:
    PyNaCl is not installed. Source: MariaDB 12.3, plugin/auth_ed25519/server_ed25519.c, compute_password_digest()."""
    return _multiply_base(_ed25519_scalar(password))


def certificate_proof(account: Account, seed: bytes, fingerprint: bytes) -> bytes:
    """The message of a login's OK that lets a client trust a self-signed certificate; empty without a password.
    `fingerprint`: the certificate's SHA-256; `seed`: the greeting's, under any plugin. Source: MariaDB 12.3,
    sql_acl.cc, acl_authenticate(), as the client checks it: MariaDB Connector/C, plugins/auth/my_auth.c,
    run_plugin_auth(), and ed25519.c, auth_ed25519_hash().
    """
    if not account.has_password:
        return b""
    digest = hashlib.sha256(account.password_hash + seed + fingerprint).hexdigest()
    return PROOF_MARK + digest.upper().encode()


def _is_signature(public_key: bytes, nonce: bytes, answer: bytes) -> bool:
    from nacl.exceptions import BadSignatureError
    from nacl.signing import VerifyKey

    if len(answer) != ED25519_SIGNATURE_SIZE:
        return False
    try:
        VerifyKey(public_key).verify(nonce, answer)
    except BadSignatureError:
        return False
    return True


def _xor(one: bytes, other: bytes) -> bytes:
    assert len(one) == len(other), (len(one), len(other))
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(len(one), "little")


def _ed25519_scalar(password: str) -> bytes:
    scalar = bytearray(hashlib.sha512(password.encode()).digest()[:32])
    scalar[0] &= 0b1111_1000
    scalar[31] = scalar[31] & 0b0111_1111 | 0b0100_0000
    return bytes(scalar)


def _multiply_base(scalar: bytes) -> bytes:
    from nacl.bindings import crypto_scalarmult_ed25519_base_noclamp

    return bytes(crypto_scalarmult_ed25519_base_noclamp(scalar))
