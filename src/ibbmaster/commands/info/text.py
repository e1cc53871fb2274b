"""The content of a log as lines for people."""

from collections.abc import Iterator, Sequence
from typing import Any

from ibbmaster.storage.codec.printable import printable
from .log_info import Facts
from .statistics import ChangeSum

TABLES_SHOWN = 40
GAPS_SHOWN = 5
FILES_SHOWN = 40


def text_lines(facts: Facts) -> Iterator[str]:
    """No character moves a terminal's cursor or changes its colours."""
    return map(printable, _lines(facts))


def size_text(size: int) -> str:
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    files = _counted(len(facts["files"]), "file")
    yield f"{facts['path']}: {facts['format']}, {files}, checksums: {facts['checksums']}"
    yield (
        f"{_counted(facts['groups'], 'event group')}, {_counted(facts['events'], 'event')}, "
        f"{size_text(facts['bytes'])} of events; GTID position [{facts['gtid_position']}]"
    )
    yield from _times(facts)
    yield from _origin(facts)
    yield from _files(facts)
    if facts["groups"]:
        yield from _domains(facts)
        yield from _tables(facts)
        yield from _largest(facts)
        yield from _types(facts)


def _times(facts: dict[str, Any]) -> Iterator[str]:
    first, last, pause = facts["first"], facts["last"], facts["longest_pause"]
    if first is None:
        return
    yield f"from {first['time']} ({first['gtid']}) to {last['time']} ({last['gtid']})"
    if pause is not None:
        between = f"between {pause['after']} and {pause['before']}"
        yield f"longest pause: {pause['seconds']} s from {pause['from']}, {between}"
    if facts["clock_steps_back"]:
        yield (
            f"{_counted(facts['clock_steps_back'], 'group')} older than the one before; "
            f"times are between {facts['earliest']} and {facts['latest']}"
        )


def _origin(facts: dict[str, Any]) -> Iterator[str]:
    servers = [f"{one['version']} ({_counted(one['starts'], 'start')})" for one in facts["servers"]]
    if servers:
        yield f"written by MariaDB {', '.join(servers)}"
    yield f"compressed events: {facts['compressed_events']}, annotated statements: {facts['annotations']}"


def _files(facts: dict[str, Any]) -> Iterator[str]:
    rows = [("file", "bytes", "state", "begins after")]
    shown = facts["files"][:FILES_SHOWN]
    begins = ["" if one["begins_after"] is None else _cut(f"[{one['begins_after']}]") for one in shown]
    rows += [(one["name"], one["bytes"], one["state"], begin) for one, begin in zip(shown, begins, strict=True)]
    yield from _table(rows, right={1})
    if len(facts["files"]) > len(shown):
        yield f"… and {_counted(len(facts['files']) - len(shown), 'file')} more: --json has all"
    yield from (f"{one['name']}: {one['problem']}" for one in shown if "problem" in one)
    if facts["redo_log"] is not None:
        yield str(facts["redo_log"]["text"])


def _domains(facts: dict[str, Any]) -> Iterator[str]:
    rows: list[tuple[Any, ...]] = [("domain", "groups", "bytes", "first", "last", "missing numbers", "servers")]
    for one in facts["domains"]:
        servers = ", ".join(str(server["server_id"]) for server in one["servers"])
        rows.append(
            (one["domain"], one["groups"], one["bytes"], one["first"], one["last"], one["missing"], _cut(servers))
        )
    yield from _table(rows, right={0, 1, 2, 5})
    for one in facts["domains"]:
        for gap in one["gaps"][:GAPS_SHOWN]:
            yield f"domain {one['domain']}: {gap['missing']} missing between {gap['after']} and {gap['before']}"
        if one["gap_count"] > GAPS_SHOWN:
            yield f"domain {one['domain']}: … and {one['gap_count'] - GAPS_SHOWN} more gaps"
        if one["steps_back"]:
            yield f"domain {one['domain']}: {_counted(one['steps_back'], 'group')} not newer than the one before"


def _tables(facts: dict[str, Any]) -> Iterator[str]:
    if not facts["tables"]:
        return
    kinds = [kind.value for kind in ChangeSum]
    rows: list[tuple[Any, ...]] = [("table", *[f"{kind}{'s' * (kind != 'ddl')}" for kind in kinds], "bytes", "")]
    order = sorted(facts["tables"], key=lambda one: (-table_bytes(one), one["table"]))
    for one in order[:TABLES_SHOWN]:
        notes = [] if one["column_names"] else ["no column names"]
        notes += [] if one["insert"] else ["rows cannot be counted"]
        counts = [one[kind]["count"] if one[kind] else "?" for kind in kinds]
        rows.append((one["table"], *counts, table_bytes(one), ", ".join(notes)))
    yield from _table(rows, right={1, 2, 3, 4, 5})
    if len(order) > TABLES_SHOWN:
        yield f"… and {_counted(len(order) - TABLES_SHOWN, 'table')} more: --json has all"


def table_bytes(table: dict[str, Any]) -> int:
    return sum(table[kind.value]["bytes"] for kind in ChangeSum if table[kind.value])


def _largest(facts: dict[str, Any]) -> Iterator[str]:
    rows: list[tuple[Any, ...]] = [("largest group", "bytes", "events", "time", "tables")]
    rows += [
        (one["gtid"], one["bytes"], one["events"], one["time"], _cut(", ".join(one["tables"])))
        for one in facts["largest"]
    ]
    yield from _table(rows, right={1, 2})


def _types(facts: dict[str, Any]) -> Iterator[str]:
    rows: list[tuple[Any, ...]] = [("event type", "events", "bytes")]
    rows += [(one["type"], one["events"], one["bytes"]) for one in facts["event_types"]]
    yield from _table(rows, right={1, 2})


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _table(rows: Sequence[Sequence[object]], *, right: set[int]) -> Iterator[str]:
    """Columns as wide as their widest cell; numbers are aligned right."""
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    yield ""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        aligned = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(aligned).rstrip()


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
