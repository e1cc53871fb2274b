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
    "[a]\n": "account 'a': expected a password",
    "[a]\npassword=x\nrights=ALL\n": "account 'a': 'rights' is none of password, password-file, auth, grant",
    "[a]\npassword=x\ngrant=FLYING\n": "there is no privilege 'FLYING'",
    "[a]\npassword=x\nauth=magic\n": "there is no authentication plugin 'magic'",
    "[a]\npassword-file=/nothing\n": "cannot read /nothing",
}


@pytest.mark.parametrize(("content", "message"), BAD_ACCOUNTS.items())
def test_an_account_that_cannot_be_made_is_named(tmp_path, content, message):
    (tmp_path / "accounts").write_text(content)
    with pytest.raises(ibbmaster.ConfigurationError, match=message):
        read_accounts(tmp_path / "accounts", requires_tls=False)


def test_the_first_account_is_not_in_the_file_too(tmp_path):
    (tmp_path / "accounts").write_text("[repl]\npassword=x\n")
    with pytest.raises(ibbmaster.ConfigurationError, match="account 'repl' is the first account, too"):
        check_options(accounts=tmp_path / "accounts")


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
