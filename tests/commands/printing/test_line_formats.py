import pytest

from ibbmaster.commands.printing.line_formats import Piece, PieceValue, Steps, written_value
from ibbmaster.kernel.fields import LineColumn, LineOp
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind

VALUE = PieceValue(LineOp.UTF8, 0, 0, '"', '"')


def texts_of(steps, first, count, place=LineColumn.START):
    found = steps.steps[first : first + count, place : place + 2].tolist()
    return [bytes(steps.store[start : start + size]).decode() for start, size in found]


def test_texts_that_follow_each_other_are_one():
    steps = Steps()
    first, count = steps.add([Piece("a"), Piece("b"), Piece("é", VALUE, 3, is_after=True), Piece("c"), Piece("d")])
    assert texts_of(steps, first, count) == ["abé", "cd"]
    assert texts_of(steps, first, 1, LineColumn.OPENING) == texts_of(steps, first, 1, LineColumn.CLOSING) == ['"']
    assert steps.steps[first, [LineColumn.SLOT, LineColumn.IS_AFTER]].tolist() == [6, 1]


def test_a_text_is_kept_once_and_there_is_room_for_all():
    steps = Steps()
    lines = [[Piece(f"text {number} ", VALUE, 0), Piece("end")] for number in range(1000)]
    found = [steps.add(line) for line in lines + lines]
    assert [texts_of(steps, *one) for one in found[:1000]] == [texts_of(steps, *one) for one in found[1000:]]
    assert texts_of(steps, *found[-1]) == ["text 999 ", "end"]
    assert steps.text("text 0 ") == (0, 7)


def test_choices_have_their_texts():
    steps = Steps()
    known = [*map(str, range(100)), None]
    first, _ = steps.add([Piece("", PieceValue(LineOp.CHOICE, 0, len(known), choices=known), 0)])
    again, _ = steps.add([Piece("", PieceValue(LineOp.CHOICE, 0, len(known), choices=tuple(known)), 0)])
    place = steps.steps[first, LineColumn.FIRST]
    assert steps.steps[again, LineColumn.FIRST] == place
    *found, (_, nothing) = steps.choices[place : place + len(known)].tolist()
    assert [bytes(steps.store[start : start + size]).decode() for start, size in found] == known[:-1]
    assert nothing == -1


@pytest.mark.parametrize(
    ("column", "op"),
    [
        (Column(name="a", type=ColumnType.FLOAT, metadata=4, kind=ValueKind.FLOAT), LineOp.SIDE),
        (Column(name="a", type=ColumnType.DATETIME, metadata=0, kind=ValueKind.DATETIME), LineOp.SIDE),
        (Column(name="a", type=ColumnType.VARCHAR_COMPRESSED, metadata=9, kind=ValueKind.TEXT), LineOp.SIDE),
        (Column(name="a", type=ColumnType.VARCHAR, metadata=9, kind=ValueKind.TEXT, charset="ucs2"), LineOp.SIDE),
        (Column(name="a", type=ColumnType.VARCHAR, metadata=9, kind=ValueKind.TEXT, charset="latin1"), LineOp.LETTERS),
        (Column(name="a", type=ColumnType.VARCHAR, metadata=9, kind=ValueKind.TEXT), LineOp.UTF8),
        (Column(name="a", type=ColumnType.ENUM, metadata=1, kind=ValueKind.ENUM, size=1), LineOp.SIDE),
    ],
)
def test_what_kernels_do_not_write_is_left_to_the_reference(column, op):
    assert written_value(column, quote='"', base64=("", ""), labels=None, letters=str).op == op
