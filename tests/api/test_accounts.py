import os

import pytest

import ibbmaster
from ibbmaster.api.accounts import first_line, read_accounts, read_sections
from ibbmaster.api.serving import check_options
from ibbmaster.primary.dialogue.privileges import PRIVILEGES, READING


@pytest.fixture(autouse=True)
def _files_are_private():
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_an_account_has_what_it_is_granted_and_others_come_from_a_file(tmp_path):
    (tmp_path / "secret").write_text("deep\n")
    (tmp_path / "accounts").write_text(
        "[monitor]\npassword = 'x y'\ngrant = BINLOG MONITOR\n"
        f"[admin]\npassword-file = {tmp_path}/secret\nauth = ed25519\ngrant = ALL\n[reader]\npassword = x\n"
    )
    made = check_options(grant="REPLICATION SLAVE", accounts=tmp_path / "accounts", tls="off").primary
    assert made.held_by("repl") == {"REPLICATION SLAVE"}
    assert made.held_by("monitor") == {"BINLOG MONITOR"}
    assert made.held_by("admin") == set(PRIVILEGES)
    assert made.held_by("reader") == READING
    native = "mysql_native_password"
    assert [account.plugin_name for account, _ in made.other_accounts] == [native, "client_ed25519", native]


BAD_ACCOUNTS = {
    "[a]\n": "account 'a': expected one of password, password-file, password-hash, found none",
    "[a]\npassword=x\npassword-hash=*0\n": "account 'a': expected one of .*, found password and password-hash",
    "[a]\npassword=x\nrights=ALL\n": "account 'a': 'rights' is none of password, .*, auth, grant, hosts, require-tls",
    "[a]\npassword=x\nrequire_tls=on\n": r"'require_tls' is none of .* \(did you mean 'require-tls'\?\)",
    "[a]\npassword=x\nrequire-tls=perhaps\n": "account 'a': require-tls 'perhaps': expected on or off",
    "[a]\npassword=x\nhosts=\n": "account 'a': host '': expected an address",
    "[a]\npassword=x\nhosts=10.0.%, db.example\n": "account 'a': host 'db.example': expected an address, a network",
    "[a]\npassword=x\ngrant=FLYING\n": "account 'a': there is no privilege 'FLYING'",
    "[a]\npassword=x\nauth=magic\n": "account 'a': there is no authentication plugin 'magic'",
    "[a]\npassword-file=/nothing\n": "account 'a': cannot read /nothing",
    "[a]\npassword-file=/dev/null\n": "account 'a': /dev/null has no password in its first line",
    "[a]\npassword-hash=*0123\n": r"account 'a': password-hash is not .*expected \* and 40 hexadecimal digits",
    "[a]\nauth=ed25519\npassword-hash=*0123\n": "account 'a': password-hash is not one of ed25519: expected 43",
}


@pytest.mark.parametrize(("content", "message"), BAD_ACCOUNTS.items())
def test_an_account_that_cannot_be_made_is_named(tmp_path, content, message):
    (tmp_path / "accounts").write_text(content)
    with pytest.raises(ibbmaster.ConfigurationError, match=message):
        read_accounts(tmp_path / "accounts", requires_tls=False)


@pytest.mark.parametrize("given", [{"password": "y"}, {"grant": "ALL"}])
def test_the_first_account_is_in_the_file_or_in_the_options(tmp_path, given):
    (tmp_path / "accounts").write_text(f"[other]\npassword=x\n[repl]\npassword-hash=*{0:040}\ngrant = ALL\n")
    made = check_options(accounts=tmp_path / "accounts", host="0.0.0.0", tls="off").primary
    assert (made.account.user, made.account.password_hash, made.held) == ("repl", bytes(20), set(PRIVILEGES))
    assert [account.user for account in made.accounts] == ["repl", "other"]
    with pytest.raises(ibbmaster.ConfigurationError, match="account 'repl' is the first account, too: leave out its"):
        check_options(accounts=tmp_path / "accounts", **given)


def test_an_account_that_requires_tls_is_refused_where_tls_is_off(tmp_path):
    (tmp_path / "accounts").write_text("[a]\npassword=x\nrequire-tls\n[b]\npassword=x\nrequire-tls=ON\n")
    assert [one.requires_tls for one in check_options(accounts=tmp_path / "accounts").primary.accounts] == [0, 1, 1]
    with pytest.raises(
        ibbmaster.ConfigurationError, match="accounts: account 'a' requires TLS, which is off: see --tls"
    ):
        check_options(accounts=tmp_path / "accounts", tls="off")


def test_accounts_may_be_made_to_need_tls(tmp_path):
    (tmp_path / "accounts").write_text("[a]\npassword=x\n")
    assert [account.requires_tls for account, _ in read_accounts(tmp_path / "accounts", requires_tls=True)] == [True]


@pytest.mark.parametrize("content", ["[a]\npassword=x\n", "[a]\npassword-file={}/secret\n"])
def test_a_password_that_every_user_of_the_machine_may_read_is_refused(tmp_path, content):
    for name, text in {"secret": "x", "accounts": content.format(tmp_path)}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o644)
    with pytest.raises(ibbmaster.ConfigurationError, match=r"has a password, and every user .*: `chmod o= "):
        read_accounts(tmp_path / "accounts", requires_tls=False)
    for name in ("secret", "accounts"):
        (tmp_path / name).chmod(0o640)
    assert read_accounts(tmp_path / "accounts", requires_tls=False)


def test_a_secret_is_the_first_line_of_its_file(tmp_path):
    (tmp_path / "secret").write_bytes(b"deep \r\nand more")
    assert first_line(tmp_path / "secret") == "deep "
    (tmp_path / "secret").write_bytes(b"\xff")
    with pytest.raises(ibbmaster.ConfigurationError, match="is not UTF-8 text"):
        first_line(tmp_path / "secret")


def test_values_may_be_quoted_and_included_files_are_left_alone(tmp_path):
    (tmp_path / "my.cnf").write_text("!include /etc/secret.cnf\n[a]\nuser = 'x y'\nskip-name-resolve\nother = \"z\" \n")
    assert read_sections(tmp_path / "my.cnf") == {"a": {"user": "x y", "skip-name-resolve": None, "other": "z"}}
