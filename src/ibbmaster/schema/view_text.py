"""Views and sequences: the statements that made them, as SHOW CREATE has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from ibbmaster.schema.model import TableVersion
from ibbmaster.sqltext.quoting import quoted_name, quoted_text

_NAME = r"(?:`(?:[^`]++|``)*+`|'[^']*'|[\w$%.]+)"
_VIEW = re.compile(
    rf"""\s*CREATE\s+(?:OR\s+REPLACE\s+)?
    (?:ALGORITHM\s*=\s*(?P<algorithm>\w+)\s+)?
    (?:DEFINER\s*=\s*(?P<definer>{_NAME}(?:\s*@\s*{_NAME})?|CURRENT_USER(?:\s*\(\s*\))?)\s+)?
    (?:SQL\s+SECURITY\s+(?P<security>\w+)\s+)?
    VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}(?:\s*\.\s*{_NAME})?\s*(?P<columns>\([^()]*\)\s*)?AS\s+(?P<query>.*)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_CHECK = re.compile(r"\s+WITH\s+(?:(CASCADED|LOCAL)\s+)?CHECK\s+OPTION\s*\Z", re.IGNORECASE)
_SEQUENCE_OPTION = re.compile(
    r"\b(?:(START|INCREMENT|CACHE|MINVALUE|MAXVALUE)\s*(?:WITH\b|BY\b|=)?\s*(-?\d+)|(NOCACHE|NOCYCLE|CYCLE))\b",
    re.IGNORECASE,
)
SEQUENCE_MAX = 9223372036854775806
SEQUENCE_CACHE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewParts:
    """A view in the words of information_schema."""

    query: str
    columns: str = ""  # in brackets, with a blank before, where they are named
    check_option: str = "NONE"
    definer: str = ""
    security: str = "DEFINER"
    algorithm: str = "UNDEFINED"


def view_parts(table: TableVersion) -> ViewParts:
    """What the statement says that made a view; the query stays as it was written."""
    text = (table.text or "").strip().rstrip(";")
    match = _VIEW.match(text)
    if match is None:
        return ViewParts(query=text)
    query = match["query"].strip()
    check = _CHECK.search(query)
    if check is not None:
        query = query[: check.start()]
    return ViewParts(
        query=query,
        columns=f" {match['columns'].strip()}" if match["columns"] else "",
        check_option="NONE" if check is None else (check[1] or "CASCADED").upper(),
        definer=re.sub(r"[`']", "", match["definer"] or ""),
        security=(match["security"] or "DEFINER").upper(),
        algorithm=(match["algorithm"] or "UNDEFINED").upper(),
    )


def create_view(table: TableVersion, *, is_qualified: bool = False) -> str:
    """The text of SHOW CREATE VIEW, perhaps with its database; what a server makes of the query is not known."""
    parts = view_parts(table)
    user, _, host = parts.definer.partition("@")
    definer = f" DEFINER={quoted_name(user)}@{quoted_name(host or '%')}" if user else ""
    database = f"{quoted_name(table.database)}." if is_qualified else ""
    check = "" if parts.check_option == "NONE" else f" WITH {parts.check_option} CHECK OPTION"
    return (
        f"CREATE ALGORITHM={parts.algorithm}{definer} SQL SECURITY {parts.security} VIEW {database}"
        f"{quoted_name(table.name)}"
        f"{parts.columns} AS {parts.query}{check}"
    )


class SequenceOptions(NamedTuple):
    """What CREATE SEQUENCE says, or means."""

    start: int
    minimum: int
    maximum: int
    increment: int
    cache: int
    is_cycling: bool


def sequence_options(table: TableVersion) -> SequenceOptions:
    """What the statement says that made a sequence."""
    numbers: dict[str, int] = {}
    flags: set[str] = set()
    for name, number, flag in _SEQUENCE_OPTION.findall(re.sub(r"\bNO\s+", "NO", table.text or "")):
        if flag:
            flags.add(flag.upper())
        else:
            numbers[name.upper()] = int(number)
    increment = numbers.get("INCREMENT", 1)
    is_rising = increment >= 0
    minimum = numbers.get("MINVALUE", 1 if is_rising else -SEQUENCE_MAX - 1)
    maximum = numbers.get("MAXVALUE", SEQUENCE_MAX if is_rising else -1)
    start = numbers.get("START", minimum if is_rising else maximum)
    cache = 0 if "NOCACHE" in flags else numbers.get("CACHE", SEQUENCE_CACHE)
    return SequenceOptions(start, minimum, maximum, increment, cache, "CYCLE" in flags)


def create_sequence(table: TableVersion) -> str:
    """The text of SHOW CREATE SEQUENCE."""
    options = sequence_options(table)
    return (
        f"CREATE SEQUENCE {quoted_name(table.name)} start with {options.start} minvalue {options.minimum} "
        f"maxvalue {options.maximum} increment by {options.increment} "
        f"{f'cache {options.cache}' if options.cache else 'nocache'} "
        f"{'cycle' if options.is_cycling else 'nocycle'} ENGINE={table.options.get('ENGINE', 'InnoDB')}"
        f"{f' COMMENT={quoted_text(comment)}' if (comment := table.comment) else ''}"
    )
