"""Groups of a log as scenario files and control sockets write them, in files also shortly.

A group or a change with `times` comes that number of times, counted from `first`; `{n}` in its texts is the number, and
a text that is only that is a number. A value `{text = "ab", times = 3}` is a repeated text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import Gtid
from .given import expect, naming, only, shown
from .incident import GroupCopier
from .primary import FixturePrimary
from .transactions import FixtureTransaction

SECONDS_MAX = 86_400.0
TIMES_MAX = 100_000  # of a group, or of a change in one
TEXT_SIZE_MAX = 64 << 20  # characters
_NUMBER = "{n}"
CHANGES = ("insert", "update", "delete", "statement", "annotate", "savepoint", "roll_back_to", "next")
_NAMED = ("gtid", "domain", "server_id", "seq_no")
_KEYS = {
    "changes": (*_NAMED, "commit_id", "is_transactional", "xa_prepare"),
    "ddl": (*_NAMED, "database"),
    "start_alter": (*_NAMED, "database"),
    **dict.fromkeys(("commit_alter", "rollback_alter", "xa_commit", "xa_rollback"), _NAMED),
    "flush": (),
    "recorded": (),
}
_BESIDE = {
    **dict.fromkeys(("insert", "delete"), ("values",)),
    "update": ("where", "values"),
    "statement": ("database",),
}
_TYPES = {"domain": int, "server_id": int, "seq_no": int, "commit_id": int, "is_transactional": bool, "flush": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenGroup:
    """One group, or FLUSH BINARY LOGS, or groups of the log that a scenario begins with.

    Attributes:
        kind: one of `_KEYS`.
        what: the changes in order, or the text; the GTID of a START ALTER to end, the last GTID of recorded groups.
        at: its second on the scenario's clock; None: before anything is served.
    """

    kind: str
    what: Any
    at: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> WrittenGroup:
        """A group from a table of a scenario. Raises ConfigurationError: a key or a value means nothing."""
        kinds = [kind for kind in _KEYS if kind in given]
        if len(kinds) != 1:
            raise ConfigurationError(f"expected one of {', '.join(_KEYS)}; found {', '.join(kinds) or 'none'}")
        kind = kinds[0]
        only("", given, (kind, "at", *_KEYS[kind]))
        at = expect("at", float | None, given.get("at"))
        if at is not None and not 0 <= at <= SECONDS_MAX:
            raise ConfigurationError(f"at {at!r}: expected seconds from 0 to {SECONDS_MAX:.0f}")
        what = given[kind]
        if kind == "changes":
            what = tuple(_change(number, change) for number, change in enumerate(expect(kind, list, what), 1))
        else:
            expect(kind, _TYPES.get(kind, str), what)
        if kind == "recorded":
            with naming(kind):
                Gtid.parse(what)
        options = {
            name: expect(name, _TYPES.get(name, str), value)
            for name, value in given.items()
            if name not in (kind, "at")
        }
        return cls(kind=kind, what=what, at=at, options=options)

    def write(self, primary: FixturePrimary, recorded: GroupCopier | None = None) -> Gtid | None:
        """Log it; returns its GTID, if any. `recorded` copies the log that the scenario begins with. Raises
        IbbMasterError: it cannot be logged."""
        match self.kind:
            case "flush":
                primary.log.flush()
                return None
            case "recorded":
                if recorded is None:
                    raise ConfigurationError("recorded: expected [log] with a directory that has the group")
                recorded.copy_to(primary.log, self.what)
                return Gtid.parse(self.what)
            case "ddl" | "start_alter" | "commit_alter" | "rollback_alter" | "xa_commit" | "xa_rollback":
                gtid: Gtid | None = getattr(primary, self.kind)(self.what, **self.options)
                return gtid
        options = dict(self.options)
        prepared = options.pop("xa_prepare", None)
        with primary.transaction(**options) as transaction:
            for verb, change in self.what:
                _do(primary, transaction, verb, change)
            if prepared is not None:
                transaction.prepare(prepared)
        return transaction.gtid


def _change(number: int, given: object) -> tuple[str, Mapping[str, Any]]:
    change = expect(f"change {number}", dict, given)
    verbs = [verb for verb in CHANGES if verb in change]
    if len(verbs) != 1:
        raise ConfigurationError(
            f"change {number}: expected one of {', '.join(CHANGES)}; found {', '.join(verbs) or 'none'}"
        )
    verb = verbs[0]
    only(f"change {number}", change, (verb, *_BESIDE.get(verb, ())))
    expect(f"change {number}: {verb}", str, change[verb])
    for name in ("where", "values"):
        if name in _BESIDE.get(verb, ()) and (name == "values" or name in change):
            values = change.get(name)
            rows = values if verb == "insert" and isinstance(values, list) else [values]
            for row in rows:
                expect(f"change {number}: {name}", dict, row)
    return verb, change


def _do(primary: FixturePrimary, transaction: FixtureTransaction, verb: str, change: Mapping[str, Any]) -> None:
    match verb:
        case "insert":
            rows = change["values"]
            primary.table(change["insert"]).insert(*(rows if isinstance(rows, list) else [rows]))
        case "update":
            primary.table(change["update"]).update(change.get("where"), **change["values"])
        case "delete":
            primary.table(change["delete"]).delete(change["values"])
        case "statement":
            transaction.statement(change["statement"], database=expect("database", str, change.get("database", "")))
        case "next":
            primary.table(change["next"]).next()
        case _:  # "annotate", "savepoint", "roll_back_to"
            getattr(transaction, verb)(change[verb])


# Short forms


def repeated_groups(groups: Sequence[Any]) -> Iterator[Any]:
    """The groups one by one; the caller checks what is no table. Raises ConfigurationError: a number is none, or too
    large."""
    for group in _repeated(groups):
        if isinstance(group, Mapping) and isinstance(group.get("changes"), list):
            group = {**group, "changes": [_with_long_texts(change) for change in _repeated(group["changes"])]}
        yield group


def _repeated(tables: Sequence[Any]) -> Iterator[Any]:
    for table in tables:
        if not isinstance(table, Mapping) or "times" not in table:
            yield table
            continue
        times = _count("times", table["times"], TIMES_MAX)
        first = _count("first", table.get("first", 1), (1 << 63) - 1 - times)
        one = {key: value for key, value in table.items() if key not in ("times", "first")}
        for number in range(first, first + times):
            yield _numbered(one, number)


def _numbered(value: Any, number: int) -> Any:
    match value:
        case str() if value == _NUMBER:
            return number
        case str():
            return value.replace(_NUMBER, str(number))
        case Mapping():
            return {key: _numbered(each, number) for key, each in value.items()}
        case list():
            return [_numbered(each, number) for each in value]
    return value


def _with_long_texts(change: Any) -> Any:
    match change:
        case {"text": str() as text, "times": times, **rest} if not rest:
            return text * _count("times", times, TEXT_SIZE_MAX // max(1, len(text)))
        case Mapping():
            return {key: _with_long_texts(value) for key, value in change.items()}
        case list():
            return [_with_long_texts(value) for value in change]
    return change


def _count(name: str, value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ConfigurationError(f"{name} {shown(value)}: expected a whole number from 0 to {most}")
    return value
