"""The user variables of one session: those named with @."""

from __future__ import annotations

from collections.abc import Callable

from ibbmaster.dialogue.conversion import text_of
from ibbmaster.dump.request import check_variable
from ibbmaster.sqltext.literals import Value
from ibbmaster.wire.refusal import RefusedError, out_of_memory

COUNT_MAX = 1000
SIZE_MAX = 1 << 20  # of one value, in characters
TOTAL_SIZE_MAX = 4 << 20  # of all of a session


class UserVariables(dict[str, Value]):
    """Values by lower-case name, within limits."""

    def __init__(self, hold: Callable[[str, int], None] = lambda what, size: None) -> None:
        """`hold` gets how many bytes they have, and may refuse that."""
        super().__init__()
        self._hold = hold
        self._size = 0

    def assign(self, name: str, value: Value) -> None:
        """Set a variable. Raises RefusedError: it steers dumps and cannot have this value, or there is too much in all
        of them."""
        problem = check_variable(name, value)
        if problem is not None:
            raise RefusedError(problem.code, problem.sqlstate, f"{problem.text}, in '@{name}'")
        size = size_of(value)
        total = self._size + size - (size_of(self[name]) if name in self else 0)
        is_one_more = name not in self
        if size > SIZE_MAX or total > TOTAL_SIZE_MAX or (is_one_more and len(self) >= COUNT_MAX):
            raise out_of_memory(f"too much in user variables, at '@{name}'")
        if total != self._size:
            self._hold("user variables", total)
        self[name] = value
        self._size = total

    def restore(self, kept: dict[str, Value]) -> None:
        """Have these values again, and no others."""
        self.clear()
        self.update(kept)
        self._size = sum(map(size_of, kept.values()))


def size_of(value: Value) -> int:
    """About how much memory a value takes, in bytes."""
    if isinstance(value, str | bytes):
        return len(value) * (1 if value.isascii() else 4)
    return 8 if value is None else len(text_of(value))
