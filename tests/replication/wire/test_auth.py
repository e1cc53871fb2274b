import base64
import dataclasses
import hashlib

import pymysql._auth
import pytest
from nacl.bindings import crypto_scalarmult_ed25519_base

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.wire.auth import (
    certificate_proof,
    ed25519_public_key,
    make_account,
    native_password_hash,
    parse_hosts,
)
from tests.machinery.client_wire import answer_ed25519, answer_native

SEED = bytes(range(0x41, 0x55))
NONCE = bytes(range(32))
PASSWORDS = {"repl": "replpw", "admin": "adminpw", "nopw": ""}  # the accounts of the recordings

# dump-protocol, 20.1 and 20.3
REPLPW_HASH = "3febea1f0e8d83c7578aacb7997039da49cd121e"
REPLPW_ANSWER = "5f1b65a213288f05d1746f50a9da935420193888"
FINGERPRINT = "ae494dfd8ede3851fe09d2da543299caf3e5d9be41a4319358e0439c632ce1e6"
PROOF = b"\x0164A7963D78AC67E4D9B233A753FA5B7C5CB88287285E95DE9F208D7DC1B8DE45"

# What ED25519_PASSWORD() of MariaDB 10.11 gives, and for no password PyMySQL's test data
PUBLIC_KEYS = {
    "secret": "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY",
    "": "4LH+dBF+G5W2CKTyId8xR3SyDqZoQjUNUVNxx8aWbG4",
    "ä ö": "grhCU6aqh7YUDb2CQ/PaOWCIHgFjkjLxd/U1bUy2ATc",
    "a b'c": "ld3BwFBRVeybWdtGxznaebfMhMeajbw3na/femjBsXM",
    "x" * 200: "e5HbLfRFhb6rEM7LQ9dsQkRCGYfoDJTApL9+CCscjD4",
}


NATIVE, ED25519 = make_account("repl", "replpw"), make_account("repl", "replpw", plugin="ed25519")


def test_the_described_native_hash_and_answer_are_ours_and_prove_nothing_of_another_seed() -> None:
    assert native_password_hash("replpw").hex() == REPLPW_HASH
    assert answer_native("replpw", SEED).hex() == REPLPW_ANSWER
    assert NATIVE.verify(SEED, bytes.fromhex(REPLPW_ANSWER))
    assert not NATIVE.verify(SEED[::-1], bytes.fromhex(REPLPW_ANSWER))


def test_recorded_native_answers_prove_the_right_password_only(readable_conversation) -> None:
    login, seed = readable_conversation.login, readable_conversation.greeting.seed
    if login.user in PASSWORDS:  # of the other accounts nobody wrote it down
        is_right = not readable_conversation.name.startswith("wrong_password")
        assert make_account(login.user, PASSWORDS[login.user]).verify(seed, login.auth_data) == is_right
        assert (answer_native(PASSWORDS[login.user], seed) == login.auth_data) == is_right


def test_an_empty_password_is_proved_by_an_empty_answer_only() -> None:
    account = make_account("nopw", "")
    assert not account.has_password
    assert account.verify(SEED, b"")
    assert not account.verify(SEED, bytes(20))
    assert answer_native("", SEED) == b""


@pytest.mark.parametrize("password", PUBLIC_KEYS)
def test_the_public_key_of_a_password_is_mariadbs(password) -> None:
    assert base64.b64encode(ed25519_public_key(password)).decode() == PUBLIC_KEYS[password] + "="


@pytest.mark.parametrize("password", ["replpw", "secret", "", "pässwörd", "x" * 200])
def test_an_ed25519_answer_is_the_one_pymysql_gives(password) -> None:
    answer = answer_ed25519(password, NONCE)
    assert answer == pymysql._auth.ed25519_password(password.encode(), NONCE)
    assert make_account("repl", password, plugin="ed25519").verify(NONCE, answer)


def test_an_ed25519_answer_proves_only_its_own_password_and_nonce() -> None:
    assert ED25519.verify(NONCE, answer_ed25519("replpw", NONCE))
    assert not ED25519.verify(NONCE[::-1], answer_ed25519("replpw", NONCE))
    assert not ED25519.verify(NONCE, answer_ed25519("other", NONCE))


@pytest.mark.parametrize("account", [NATIVE, ED25519], ids=["native", "ed25519"])
def test_answers_that_are_random_damaged_cut_or_too_long_prove_nothing(account, damaged, rng) -> None:
    nonce = SEED if account is NATIVE else NONCE
    answer = (answer_native if account is NATIVE else answer_ed25519)("replpw", nonce)
    assert not any(account.verify(nonce, data) for data in damaged(answer))
    assert not any(account.verify(nonce, answer + (answer * 3)[:more]) for more in (1, 12, 32, 44))
    assert not any(account.verify(nonce, rng.randbytes(len(answer))) for _ in range(500))


def test_the_described_proof_of_a_certificate_is_ours() -> None:
    assert certificate_proof(NATIVE, SEED, bytes.fromhex(FINGERPRINT)) == PROOF


def test_the_proof_of_ed25519_uses_the_public_key_as_pynacl_makes_it_and_the_greetings_seed() -> None:
    fingerprint = bytes.fromhex(FINGERPRINT)
    key = crypto_scalarmult_ed25519_base(hashlib.sha512(b"replpw").digest()[:32])
    digest = hashlib.sha256(key + SEED + fingerprint).hexdigest()
    assert certificate_proof(ED25519, SEED, fingerprint) == b"\x01" + digest.upper().encode()


@pytest.mark.parametrize("plugin", ["native", "ed25519"])
def test_without_a_password_there_is_no_proof(plugin) -> None:
    assert certificate_proof(make_account("nopw", "", plugin=plugin), SEED, bytes(32)) == b""


def test_an_account_keeps_and_shows_no_password() -> None:
    for account in (NATIVE, ED25519):
        assert "replpw" not in repr(account)
        assert repr(account.password_hash) not in repr(account)


def test_accounts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="choose native or ed25519"):
        make_account("repl", "x", plugin="parsec")
    with pytest.raises(ConfigurationError, match="NUL"):
        make_account("re\x00pl", "x")


HASHES = {  # what PASSWORD('secret') and ED25519_PASSWORD('secret') print
    "native": "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7",
    "ed25519": PUBLIC_KEYS["secret"],
}


@pytest.mark.parametrize(("plugin", "stored"), HASHES.items())
def test_an_account_is_made_of_what_mariadb_stores(plugin, stored) -> None:
    assert make_account("repl", stored, plugin=plugin, is_hash=True) == make_account("repl", "secret", plugin=plugin)


@pytest.mark.parametrize("plugin", HASHES)
@pytest.mark.parametrize("text", ["", "secret", "*14E6", "*" + "G" * 40, "ä" * 43, HASHES["ed25519"] + "=", "A" * 44])
def test_a_hash_in_another_form_is_refused(plugin, text) -> None:
    with pytest.raises(ConfigurationError, match=r"password-hash is not one of .*: expected "):
        make_account("repl", text, plugin=plugin, is_hash=True)


HOSTS = {  # hosts: those that may come, those that may not
    "10.0.0.0/8": ("10.9.8.7 ::ffff:10.1.1.1", "11.0.0.1 ::1 nonsense"),
    "192.168.1.0/255.255.255.0, 10.0.0.9": ("192.168.1.77 10.0.0.9", "192.168.2.77 10.0.0.10"),
    "10.0.%": ("10.0.3.4 ::ffff:10.0.3.4", "10.1.0.3 110.0.3.4 10a0.3.4"),
    "10.0.0._": ("10.0.0.7", "10.0.0.77"),
    "fe80::/10, 2001:DB8::%": ("fe80::1%eth0 2001:db8::5", "2001:db9::5 10.0.0.1"),
    "localhost": ("127.0.0.1 ::1", "127.0.0.2"),
    "%": ("127.0.0.1 ::1 10.0.0.1", "nonsense"),
}


@pytest.mark.parametrize(("hosts", "allowed", "refused"), [(text, *both) for text, both in HOSTS.items()], ids=HOSTS)
def test_an_account_may_come_from_its_hosts_only(hosts, allowed, refused) -> None:
    account = dataclasses.replace(NATIVE, hosts=parse_hosts(hosts))
    assert [host for host in f"{allowed} {refused}".split() if account.allows(host)] == allowed.split()
    assert all(map(NATIVE.allows, f"{allowed} {refused}".split()))


@pytest.mark.parametrize("hosts", ["", "10.0.0.1,", "db%", "10.0.0.0/33", "10.0.0", "example.com", "a" * 5000])
def test_a_host_that_is_no_address_is_refused(hosts) -> None:
    with pytest.raises(ConfigurationError, match="expected an address, a network as") as caught:
        parse_hosts(hosts)
    assert len(str(caught.value)) < 300
