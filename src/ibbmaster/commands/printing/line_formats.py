"""Lines of JSON for kernels, plain or in Debezium's envelope. The references: `json_lines` and `debezium_lines`."""

from collections.abc import Sequence

from ibbmaster.kernel.fields import DELETE, INSERT, UPDATE_BEFORE, GroupColumn, LineOp
from ibbmaster.replication.event.column_types.decimals import WIDE_DIGITS
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.gtid_event import GtidXid
from ibbmaster.replication.event.rows.column import Column, TableSchema
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.tables.arrow.column_reading import Reading, line_reading_of, raw_reading_of, reading_of
from .debezium_lines import ENVELOPE, MILLISECONDS_MAX, OPERATIONS, connect_value, form_of, has_clock
from .json_lines import change_begin, json_text, json_value, statement_text
from .line_plan import SIDE, Piece, PieceValue, written_value

KINDS = {INSERT: "insert", UPDATE_BEFORE: "update", DELETE: "delete"}
BASE64 = '{"base64":"', '"}'
HEADS = ("milliseconds", "microseconds", "nanoseconds", "server_id", "gtid", "file", "position")
SECONDS = int(GroupColumn.TIMESTAMP)


def labels_of(column: Column) -> list[str] | None:
    return None if column.labels is None else [json_text(label) for label in ("", *column.labels)]


def unquoted(text: str) -> str:
    return json_text(text)[1:-1]


def image(
    form: "JsonFormat | DebeziumFormat",
    table: TableSchema,
    numbers: Sequence[int],
    present: Sequence[int],
    *,
    is_after: bool,
) -> list[Piece]:
    pieces = [Piece("{")]
    for number in numbers:
        column = table.columns[number]
        text = f"{',' if len(pieces) > 1 else ''}{json_text(column.name)}:"
        is_there = number in present
        pieces.append(Piece(text, form.written(column), number, is_after) if is_there else Piece(f"{text}null"))
    return [*pieces, Piece("}")]


class JsonFormat:
    def reading(self, column: Column) -> Reading:
        """Raises ValueError: values of this type are unreadable."""
        return line_reading_of(column)

    def heads(self, file_name: str) -> Sequence[Sequence[Piece]]:
        """What lines of a group of a file share, without values."""
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
        """Images have these columns, none without an image."""
        old = [] if kind == INSERT else before
        new = before if kind == INSERT else after
        return [
            Piece("", PieceValue(LineOp.HEAD, 0)),
            Piece("", PieceValue(LineOp.NUMBER)),
            Piece(f',{change_begin(table, KINDS[kind])},"before":'),
            *([Piece("null")] if kind == INSERT else image(self, table, old, old, is_after=False)),
            Piece(',"after":'),
            *([Piece("null")] if kind == DELETE else image(self, table, new, new, is_after=kind == UPDATE_BEFORE)),
            Piece("}\n"),
        ]

    def written(self, column: Column) -> PieceValue:
        return written_value(column, quote='"', base64=BASE64, labels=labels_of(column), letters=unquoted)

    def text(self, column: Column, value: object) -> str:
        return json_text(json_value(value))

    def statement(self, statement: LoggedStatement, *, is_ddl: bool) -> tuple[int, str] | None:
        """The head before the number, and the text after it; None: no line."""
        return 0, f",{statement_text(statement, is_ddl=is_ddl)}\n"


class DebeziumFormat:
    def reading(self, column: Column) -> Reading:
        match form_of(column):
            case "bits":
                return raw_reading_of(column)
            case "number":
                return reading_of(column, "timestamp_ntz" if has_clock(column) else "date")
            case "unscaled" if column.size <= WIDE_DIGITS:
                return reading_of(column, kind_of(column).frame_type(column, keeps_zeros=True))
        return line_reading_of(column)

    def heads(self, file_name: str) -> Sequence[Sequence[Piece]]:
        return [
            *([Piece("", PieceValue(LineOp.GROUP, SECONDS, 10**power))] for power in (3, 6, 9)),
            [Piece("", PieceValue(LineOp.GROUP, int(GroupColumn.SERVER), 1))],
            [Piece('"', PieceValue(LineOp.GTID)), Piece('"')],
            [Piece(json_text(file_name))],
            [Piece("", PieceValue(LineOp.GROUP, int(GroupColumn.FILE_OFFSET), 1))],
        ]

    def note(self, commit_id: int | None, xid: GtidXid | None) -> str:
        return ""

    def line(self, table: TableSchema, kind: int, before: Sequence[int], after: Sequence[int]) -> Sequence[Piece]:
        same = {"database": table.database, "table": table.table, "operation": OPERATIONS[KINDS[kind]]}
        texts = {name: json_text(value) for name, value in same.items()}
        pieces: list[Piece] = []
        numbers = range(len(table.columns))
        for place, part in enumerate(ENVELOPE):
            if place % 2 == 0 or part in texts:
                pieces.append(Piece(texts[part] if place % 2 else part))
            elif part == "row":
                pieces.append(Piece("", PieceValue(LineOp.NUMBER)))
            elif part == "before":
                pieces += [Piece("null")] if kind == INSERT else image(self, table, numbers, before, is_after=False)
            elif part == "after":
                new, is_update = before if kind == INSERT else after, kind == UPDATE_BEFORE
                pieces += [Piece("null")] if kind == DELETE else image(self, table, numbers, new, is_after=is_update)
            else:
                pieces.append(Piece("", PieceValue(LineOp.HEAD, HEADS.index(part))))
        return [*pieces, Piece("\n")]

    def written(self, column: Column) -> PieceValue:
        match form_of(column):
            case "unscaled" if column.size <= WIDE_DIGITS:
                return PieceValue(LineOp.UNSCALED, 0, 0, '"', '"')
            case "raw" | "bits" | "unscaled":
                return SIDE
            case "number":
                is_short = has_clock(column) and column.scale <= MILLISECONDS_MAX
                return PieceValue(LineOp.INTEGER, 1, 1000 if is_short else 0)
            case "zoned":
                return PieceValue(LineOp.TIMESTAMP, column.scale, ord("T"), '"', 'Z"')
            case "bytes":
                return PieceValue(LineOp.BASE64, column.size if column.is_fixed_length else 0, 0, '"', '"')
        return written_value(column, quote='"', base64=('"', '"'), labels=labels_of(column), letters=unquoted)

    def text(self, column: Column, value: object) -> str:
        return json_text(connect_value(column, value))

    def statement(self, statement: LoggedStatement, *, is_ddl: bool) -> tuple[int, str] | None:
        return None


LineFormat = JsonFormat | DebeziumFormat
