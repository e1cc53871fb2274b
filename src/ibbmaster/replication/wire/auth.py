"""Who may log in: from where, and by proving a password without sending it. Formulas: protocol/wire/authentication.md.
No `repr` and no error shows a secret."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ibbmaster.errors import ConfigurationError
from .handshake import NATIVE_PASSWORD

ED25519 = "client_ed25519"
ED25519_SIGNATURE_SIZE = 64
PROOF_MARK = b"\x01"  # first byte of the message of a login's OK if it is a proof
NATIVE_HASH = re.compile(r"\*([0-9A-F]{40})", re.ASCII | re.IGNORECASE)  # as PASSWORD() prints it
ED25519_KEY_SIZE = 32
HOST_PATTERN = re.compile(r"%|[0-9a-f%_]*[.:][0-9a-f.:%_]*", re.ASCII | re.IGNORECASE)
LOCALHOST = (ipaddress.ip_network("127.0.0.1"), ipaddress.ip_network("::1"))

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Hosts: TypeAlias = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network | re.Pattern[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user, and the secret of a client's plugin: for mysql_native_password SHA-1 of SHA-1 of the password, empty
    without one; for client_ed25519 the public key of the password. `hosts`: from where it may log in; none: from
    anywhere."""

    user: str
    plugin_name: str
    password_hash: bytes = field(repr=False)
    has_password: bool
    requires_tls: bool = False
    hosts: Hosts = ()

    def allows(self, host: str) -> bool:
        """Whether it may log in from this address. Source: MariaDB 12.3, hostname.h, compare_hostname()."""
        if not self.hosts:
            return True
        address = peer_address(host)
        return address is not None and any(
            one.fullmatch(str(address)) is not None if isinstance(one, re.Pattern) else address in one
            for one in self.hosts
        )

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


def make_account(
    user: str, password: str, *, plugin: str = "native", requires_tls: bool = False, is_hash: bool = False
) -> Account:
    """From a password in clear, which it does not keep, or what MariaDB stores of one. Raises ConfigurationError:
    `plugin` is neither "native" nor "ed25519", ed25519 lacks PyNaCl, the text is no such hash, or a user name has NUL.
    """
    match plugin:
        case "native":
            name, hashed = NATIVE_PASSWORD, native_password_hash
        case "ed25519":
            name, hashed = ED25519, ed25519_public_key
        case _:
            raise ConfigurationError(f"there is no authentication plugin {plugin!r}: choose native or ed25519")
    if "\x00" in user:
        raise ConfigurationError("a user name cannot hold NUL")
    return Account(
        user=user,
        plugin_name=name,
        password_hash=stored_hash(password, plugin=name) if is_hash else hashed(password),
        has_password=bool(password),
        requires_tls=requires_tls,
    )


def stored_hash(text: str, *, plugin: str) -> bytes:
    """What CREATE USER … IDENTIFIED VIA … USING takes. Raises ConfigurationError: it has another form."""
    if plugin == NATIVE_PASSWORD:
        if (found := NATIVE_HASH.fullmatch(text)) is not None:
            return bytes.fromhex(found[1])
        expected = "* and 40 hexadecimal digits, as SELECT PASSWORD('…') prints (or auth = ed25519)"
        raise ConfigurationError(f"password-hash is not one of mysql_native_password: expected {expected}")
    try:
        key = base64.b64decode(text + "=", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != ED25519_KEY_SIZE:
        raise ConfigurationError(
            "password-hash is not one of ed25519: expected 43 characters of base64, as SHOW CREATE USER prints"
        )
    return key


def parse_hosts(text: str) -> Hosts:
    """The members of a list with commas: addresses, networks as 10.0.0.0/8 or 10.0.0.0/255.0.0.0, localhost, and
    patterns of addresses as 10.0.%. Raises ConfigurationError: one is none of these, or the list is empty."""
    found: list[ipaddress.IPv4Network | ipaddress.IPv6Network | re.Pattern[str]] = []
    for word in map(str.strip, text.split(",")):
        if word == "localhost":
            found += LOCALHOST
        elif ("%" in word or "_" in word) and HOST_PATTERN.fullmatch(word):
            found.append(re.compile(word.replace(".", r"\.").replace("%", ".*").replace("_", "."), re.IGNORECASE))
        else:
            try:
                found.append(ipaddress.ip_network(word, strict=False))
            except ValueError:
                forms = "an address, a network as 10.0.0.0/8, a pattern as 10.0.%, or localhost"
                raise ConfigurationError(
                    f"host {word[:80]!r}: expected {forms}; other names are not looked up"
                ) from None
    return found


def peer_address(host: str) -> Address | None:
    """Of a client, without the zone; an IPv4 address in IPv6 as itself. None: it is no address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


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
