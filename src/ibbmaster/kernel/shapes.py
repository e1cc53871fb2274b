"""What kernels take and give, as words of 64 bits: what compiled code and who calls it agree upon.

A number is one word. An array is its address, and its size in each dimension. A tuple with
names is its fields, one after the other. What is given back is at most two words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ibbmaster.kernel import fields
from ibbmaster.kernel.calls import Kernels


class ArrayShape(NamedTuple):
    """An array whose items lie one behind the other."""

    item: str  # the name of its type
    dimensions: int


class TupleShape(NamedTuple):
    """A tuple with names."""

    kind: type[Any]
    fields: tuple[Shape, ...]


Shape = ArrayShape | TupleShape | None  # None: a number
_ARRAYS = {
    "Bytes": ArrayShape("uint8", 1),
    "ByteRows": ArrayShape("uint8", 2),
    "Shorts": ArrayShape("int32", 1),
    "ShortRows": ArrayShape("int32", 2),
    "Numbers": ArrayShape("int64", 1),
    "NumberRows": ArrayShape("int64", 2),
}
_RESULTS = {"None": 0, "int": 1, "tuple[int, int]": 2}


def shapes_of(kernel: str) -> tuple[Shape, ...]:
    """Of what a kernel takes, by what `Kernels` says of it."""
    return tuple(_shape(told) for name, told in _told(kernel).items() if name != "return")


def results_of(kernel: str) -> int:
    """How many words it gives."""
    return _RESULTS[_told(kernel)["return"]]


def words_of(shape: Shape) -> int:
    """How many words stand for something of this shape."""
    if isinstance(shape, TupleShape):
        return sum(map(words_of, shape.fields))
    return 1 if shape is None else 1 + shape.dimensions


def _told(kernel: str) -> dict[str, str]:
    return vars(Kernels)[kernel].__annotations__  # type: ignore[no-any-return]


def _shape(told: Any) -> Shape:
    name = getattr(told, "__forward_arg__", told)  # of the fields of a tuple
    if name in ("int", int):
        return None
    if name in _ARRAYS:
        return _ARRAYS[name]
    kind = getattr(fields, name)
    return TupleShape(kind, tuple(_shape(field) for field in kind.__annotations__.values()))
