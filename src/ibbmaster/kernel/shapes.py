"""What kernels take and give, as words of 64 bits: an array is its address and its size in each dimension, a named
tuple its fields. Two words are returned at most."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import calls
from .calls import Kernels


class ItemShape(NamedTuple):  # of an array whose items lie side by side
    item: str  # the name of its type
    dimensions: int
    is_record: bool = False  # its items, or those of a row, are the places of an enumeration


class FieldShape(NamedTuple):  # of a named tuple
    kind: type[Any]
    fields: tuple[Shape, ...]


Shape = ItemShape | FieldShape | None  # None: a number
ARRAYS = {
    "Bytes": ItemShape("uint8", 1),
    "ByteRows": ItemShape("uint8", 2),
    "Shorts": ItemShape("int32", 1),
    "ShortRows": ItemShape("int32", 2, is_record=True),
    "Numbers": ItemShape("int64", 1),
    "State": ItemShape("int64", 1, is_record=True),
    "Rows": ItemShape("int64", 2, is_record=True),
}
_RESULTS = {"None": 0, "int": 1, "tuple[int, int]": 2}


def kernel_names() -> list[str]:
    return [name for name in vars(Kernels) if not name.startswith("_")]


def shapes_of(kernel: str) -> dict[str, Shape]:
    return {name: _shape(said) for name, said in _annotations(kernel).items() if name != "return"}


def results_of(kernel: str) -> int:
    """How many words it gives."""
    return _RESULTS[_annotations(kernel)["return"]]


def words_of(shape: Shape) -> int:
    if isinstance(shape, FieldShape):
        return sum(map(words_of, shape.fields))
    return 1 if shape is None else 1 + shape.dimensions


def _annotations(kernel: str) -> dict[str, str]:
    return vars(Kernels)[kernel].__annotations__  # type: ignore[no-any-return]


def _shape(said: Any) -> Shape:
    name = getattr(said, "__forward_arg__", said)  # of the fields of a tuple
    if name in ("int", int):
        return None
    if name in ARRAYS:
        return ARRAYS[name]
    kind = getattr(calls, name)
    return FieldShape(kind, tuple(_shape(field) for field in kind.__annotations__.values()))
