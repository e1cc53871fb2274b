"""DDL that is hard to read, or whose outcome is not what it seems to say; each once on a real server.

In `hard_ddl.sql` each statement ends with a line of two semicolons; comment lines in front of it
say under which settings it runs, and which server does not know it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LAX = "NO_ENGINE_SUBSTITUTION"


class HardStatement(NamedTuple):
    """A statement, and what its session has set."""

    text: str
    sql_mode: str
    is_explicit: bool  # explicit_defaults_for_timestamp


def hard_statements(version: str) -> Iterator[HardStatement]:
    """All that a server of this version understands, in order."""
    for part in Path(__file__).with_suffix(".sql").read_text().split("\n;;\n"):
        lines = part.split("\n")
        settings = []
        while lines[0].startswith("-- "):
            settings.append(lines.pop(0).removeprefix("-- "))
        if not any(lines) or f"not {version}" in settings:
            continue
        modes = [one.removeprefix("sql_mode=") for one in settings if one.startswith("sql_mode=")]
        is_explicit = "explicit_defaults_for_timestamp=OFF" not in settings
        yield HardStatement("\n".join(lines), modes[0] if modes else LAX, is_explicit)
