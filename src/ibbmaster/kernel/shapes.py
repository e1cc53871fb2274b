"""What kernels take and give, as words of 64 bits: what compiled code and who calls it agree upon.

A number is one word. An array is its address, and its size in each dimension. A tuple with
names is its fields, one after the other. What is returned is at most two words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import fields
from .calls import Kernels


class ItemShape(NamedTuple):
    """An array whose items lie side by side."""

    item: str  # the name of its type
    dimensions: int
    is_record: bool = False  # its items, or those of a row, are the places of an enumeration


class FieldShape(NamedTuple):
    """A tuple with names."""

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
    "NumberRows": ItemShape("int64", 2, is_record=True),
}
_RESULTS = {"None": 0, "int": 1, "tuple[int, int]": 2}


def kernel_names() -> list[str]:
    """All kernels, as `Kernels` has them."""
    return [name for name in vars(Kernels) if not name.startswith("_")]


def named_shapes(kernel: str) -> list[tuple[str, Shape]]:
    """Of what a kernel takes, by what `Kernels` says of it."""
    return [(name, _shape(said)) for name, said in _annotations(kernel).items() if name != "return"]


def shapes_of(kernel: str) -> tuple[Shape, ...]:
    """The same without the names."""
    return tuple(shape for _, shape in named_shapes(kernel))


def results_of(kernel: str) -> int:
    """How many words it gives."""
    return _RESULTS[_annotations(kernel)["return"]]


def words_of(shape: Shape) -> int:
    """How many words stand for something of this shape."""
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
    kind = getattr(fields, name)
    return FieldShape(kind, tuple(_shape(field) for field in kind.__annotations__.values()))
