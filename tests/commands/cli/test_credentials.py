import argparse

import pytest

from ibbmaster.commands.cli import credentials
from ibbmaster.errors import ConfigurationError


def account_of(arguments, environment):
    parser = argparse.ArgumentParser()
    credentials.add_arguments(parser)
    return credentials.find_account(parser.parse_args(arguments), environment)


def test_secrets_come_from_options_files_environment_and_my_cnf_in_that_order(tmp_path):
    (tmp_path / "password").write_text("from the file\nsecond line\n")
    (tmp_path / "other").write_text("from the other file")
    cnf = tmp_path / "my.cnf"
    cnf.write_text("!include x\n[client]\nuser=no\n[ibbmaster]\nuser = 'cnf user'\npassword=\"from my.cnf\"\n")
    plain = {"IBBMASTER_PASSWORD": "from the environment"}
    file = {"IBBMASTER_PASSWORD_FILE": str(tmp_path / "other"), **plain}
    for path in (tmp_path / "password", cnf):
        path.chmod(0o600)
    in_cnf = ["--defaults-file", str(cnf)]
    assert account_of([], {}) == ("repl", "")
    assert account_of(in_cnf, {}) == ("cnf user", "from my.cnf")
    assert account_of(in_cnf, plain) == ("cnf user", "from the environment")
    assert account_of(in_cnf, file) == ("cnf user", "from the other file")
    assert account_of([*in_cnf, "--password-file", str(tmp_path / "password")], file)[1] == "from the file"
    assert account_of([*in_cnf, "--password", "given", "--user", "me"], file) == ("me", "given")


def test_a_my_cnf_with_a_password_is_refused_if_every_user_may_read_it(tmp_path):
    (tmp_path / "my.cnf").write_text("[ibbmaster]\npassword = secret\n")
    (tmp_path / "my.cnf").chmod(0o644)
    with pytest.raises(ConfigurationError, match="has a password, and every user"):
        account_of(["--defaults-file", str(tmp_path / "my.cnf")], {})
    (tmp_path / "my.cnf").write_text("[ibbmaster]\nuser = me\n")
    assert account_of(["--defaults-file", str(tmp_path / "my.cnf")], {}) == ("me", "")


BAD = {
    "no section at all": ("password=secret\n", "is not a my.cnf-style file"),
    "another section": ("[client]\n", "has no section"),
    "far too large": ("x" * 2000000, "larger than"),
    "a word that is misspelt": (
        "[ibbmaster]\npasword=secret\n",
        r"my.cnf, section \[ibbmaster\]: 'pasword' is none of user, password .did you",
    ),
    "another word": ("[ibbmaster]\nhost=h\n", "'host' is none of user, password$"),
    "a word alone": ("[ibbmaster]\npassword secret\n", "a line without a value, expected KEY=VALUE with user"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_a_bad_my_cnf_is_named_and_its_content_is_not(tmp_path, content, message):
    (tmp_path / "my.cnf").write_text(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        account_of(["--defaults-file", str(tmp_path / "my.cnf")], {})
    assert "secret" not in str(caught.value)
