"""What a statement that failed on the server has done all the same: that logged it because it had changed something."""

from __future__ import annotations

BAD_TABLE, WRONG_OBJECT, IS_VIEW, UNKNOWN_VIEW = 1051, 1347, 1965, 4092
DROPS_THE_REST = frozenset((BAD_TABLE, WRONG_OBJECT, IS_VIEW, UNKNOWN_VIEW))
"""Errors of a DROP of which some tables or views were missing, or something else: the others are gone."""


def failed(verb: str, error_code: int) -> str:
    """How a reason calls a statement of which nobody knows what it has done."""
    return f"{verb} that failed with error {error_code} on the server"
