"""Who may do what on a primary."""

from ibbmaster.dialogue import privileges
from ibbmaster.dump.profile import PROFILES
from ibbmaster.server.options import PrimaryOptions
from ibbmaster.wire.auth import make_account


def test_each_account_has_its_own_privileges():
    account, other = (make_account(name, "x", plugin="native", requires_tls=False) for name in ("repl", "other"))
    options = PrimaryOptions(
        host="127.0.0.1",
        port=0,
        account=account,
        other_accounts=((other, frozenset({privileges.SELECT})),),
        certificate=None,
        profile=PROFILES["engine"],
    )
    assert (options.held_by("repl"), options.held_by("other")) == (privileges.READING, {privileges.SELECT})
