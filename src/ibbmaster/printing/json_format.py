"""Lines of JSON for kernels. The reference: `json_lines`."""

from __future__ import annotations

from collections.abc import Sequence

from ibbmaster.arrow.column_reading import Reading, line_reading_of
from ibbmaster.event.gtid_event import GtidXid
from ibbmaster.event.rows.column import Column, TableSchema
from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.kernel.fields import DELETE, INSERT, UPDATE_BEFORE, GroupColumn, LineOp
from ibbmaster.printing.json_lines import change_begin, json_text, json_value, statement_text
from ibbmaster.printing.line_plan import Piece, PieceValue, written_value

KINDS = {INSERT: "insert", UPDATE_BEFORE: "update", DELETE: "delete"}
BASE64 = '{"base64":"', '"}'


def labels_of(column: Column) -> list[str] | None:
    """The texts of the labels of an ENUM, by number; None if they are not known."""
    return None if column.labels is None else [json_text(label) for label in ("", *column.labels)]


def unquoted(text: str) -> str:
    """A text as in a string of JSON."""
    return json_text(text)[1:-1]


class JsonFormat:
    """One change a line."""

    def reading(self, column: Column) -> Reading:
        return line_reading_of(column)

    def heads(self, file_name: str) -> Sequence[Sequence[Piece]]:
        return [
            [
                Piece('{"gtid":"', PieceValue(LineOp.GTID)),
                Piece('","time":"', PieceValue(LineOp.MOMENT)),
                Piece('","domain":', PieceValue(LineOp.GROUP, GroupColumn.DOMAIN, 1)),
                Piece(',"server_id":', PieceValue(LineOp.GROUP, GroupColumn.SERVER, 1)),
                Piece("", PieceValue(LineOp.NOTE)),
                Piece(',"number":'),
            ]
        ]

    def note(self, commit_id: int | None, xid: GtidXid | None) -> str:
        text = "" if commit_id is None else f',"commit_id":{commit_id}'
        return text if xid is None else f'{text},"xid":"{xid}"'

    def line(self, table: TableSchema, kind: int, before: Sequence[int], after: Sequence[int]) -> Sequence[Piece]:
        old = [] if kind == INSERT else before
        new = before if kind == INSERT else after
        return [
            Piece("", PieceValue(LineOp.HEAD, 0)),
            Piece("", PieceValue(LineOp.NUMBER)),
            Piece(f',{change_begin(table, KINDS[kind])},"before":'),
            *([Piece("null")] if kind == INSERT else self.image(table, old, is_after=False)),
            Piece(',"after":'),
            *([Piece("null")] if kind == DELETE else self.image(table, new, is_after=kind == UPDATE_BEFORE)),
            Piece("}\n"),
        ]

    def image(self, table: TableSchema, numbers: Sequence[int], *, is_after: bool) -> list[Piece]:
        """An image as an object."""
        pieces = [Piece("{")]
        for number in numbers:
            column = table.columns[number]
            text = f"{',' if len(pieces) > 1 else ''}{json_text(column.name)}:"
            pieces.append(Piece(text, self.written(column), number, is_after))
        return [*pieces, Piece("}")]

    def written(self, column: Column) -> PieceValue:
        return written_value(column, quote='"', base64=BASE64, labels=labels_of(column), letters=unquoted)

    def text(self, column: Column, value: object) -> str:
        return json_text(json_value(value))

    def statement(self, statement: LoggedStatement, *, is_ddl: bool) -> tuple[int, str] | None:
        return 0, f",{statement_text(statement, is_ddl=is_ddl)}\n"
