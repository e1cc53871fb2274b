"""What is known of system variables: a row each in `variables.tsv`.

Nothing here depends on any variable of a session but those named in `dump/settings.py`: they are kept, and shown again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ibbmaster.facts import NULL, rows_of

_READERS: Mapping[str, Callable[[str], bool | int | float | str]] = {
    "switch": lambda cell: cell == "ON",
    "integer": int,
    "real": float,
    "text": str,
}
_ROWS = rows_of("ibbmaster.dialogue", "variables")

#: True and False are shown as ON and OFF. The type of the value is the type of the variable.
SESSION_DEFAULTS: Mapping[str, bool | int | float | str | None] = {
    name: _READERS[kind](value) for name, kind, _, _, value, _ in _ROWS if value != NULL
}
#: Values of this primary that do not depend on anything.
FIXED: Mapping[str, bool | int | float | str | None] = {
    name: _READERS[kind](value) for name, kind, *_, value in _ROWS if value != NULL
}
#: What a variable may be, where that is one of a few words.
CHOICES = {name: tuple(words.split()) for name, _, _, words, *_ in _ROWS if words != NULL}
#: Those that have no global value.
SESSION_ONLY = frozenset(name for name, _, scope, *_ in _ROWS if scope == "session only")
#: Variables of the whole primary that a real one lets its administrators set.
SETTABLE_GLOBALS = frozenset(name for name, _, scope, *_ in _ROWS if scope == "global")
