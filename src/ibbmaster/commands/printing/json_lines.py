"""A log as JSON, one change a line. The fields: docs/printing.md."""

import base64
import json
from collections.abc import Iterator
from decimal import Decimal

from ibbmaster.api.group import Row, UndecodableValue
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.gtid_event import GtidEvent
from ibbmaster.replication.event.rows.column import TableSchema
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.sizes import time_text
from ibbmaster.storage.codec.printable import UNSEEN
from .content import ChangeLines, GroupContent, StatementItem

_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


def json_text(value: object) -> str:
    """Without any character that a terminal would obey."""
    return UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", _ENCODER.encode(value))


def json_value(value: object) -> object:
    """Numbers with all digits, decimals and dates as text, bytes as base64."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, UndecodableValue):
        return {"undecodable": base64.b64encode(value.data).decode()}
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value


def json_row(row: Row | None) -> dict[str, object] | None:
    return None if row is None else {name: json_value(value) for name, value in row.items()}


class JsonLines(ChangeLines):
    def lines(self, content: GroupContent, start: LogPosition) -> Iterator[str]:
        begin = head_text(content.head, content.timestamp)
        for number, item in enumerate(content.items()):
            if isinstance(item, StatementItem):
                text = statement_text(item.statement, is_ddl=item.is_ddl)
            else:
                table, change = item
                before, after = json_text(json_row(change.before)), json_text(json_row(change.after))
                text = f'{change_begin(table, change.kind)},"before":{before},"after":{after}}}'
            yield f'{begin},"number":{number},{text}'


def head_text(head: GtidEvent, timestamp: int) -> str:
    gtid = head.gtid
    text = f'{{"gtid":"{gtid}","time":"{time_text(timestamp)}","domain":{gtid.domain_id},"server_id":{gtid.server_id}'
    if head.commit_id is not None:
        text += f',"commit_id":{head.commit_id}'
    return text if head.xid is None else f'{text},"xid":"{head.xid}"'


def statement_text(statement: LoggedStatement, *, is_ddl: bool) -> str:
    kind = "ddl" if is_ddl else "statement"
    return json_text({"kind": kind, "database": statement.database, "statement": statement.text})[1:]


def change_begin(table: TableSchema, kind: str) -> str:
    fields = {
        "kind": kind,
        "database": table.database,
        "table": table.table,
        "primary_key": [table.columns[number].name for number in table.primary_key],
    }
    return json_text(fields)[1:-1]
