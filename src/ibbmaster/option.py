"""Options defined once: the annotation of an option is the source of its flag, help and default."""

import types
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints


class Option(NamedTuple):
    """The properties of an option wherever it appears."""

    default: Any
    help: str = ""  # of its flag; "": the command line says it in another way
    metavar: str | None = None
    group: str | None = None  # the heading of its flag


class NamedOption(NamedTuple):
    """An option with the values that its annotation allows."""

    name: str
    option: Option
    kind: type  # str, int, bool, PathLike; or list: it may be given several times
    choices: tuple[str | int, ...]  # empty: any


def named_options(options: type) -> Iterator[NamedOption]:
    """The options of a `TypedDict`, each annotated with its `Option`, in its order."""
    for name, annotation in get_type_hints(options, include_extras=True).items():
        kind, option = get_args(annotation)
        kinds = [part for part in _parts(kind) if part is not types.NoneType]
        choices = tuple(choice for part in kinds if get_origin(part) is Literal for choice in get_args(part))
        yield NamedOption(name, option, _kind(kinds, choices), choices)


def flag_of(name: str) -> str:
    return f"--{name.strip('_').replace('_', '-')}"


def _kind(kinds: list[Any], choices: tuple[Any, ...]) -> type:
    if any(get_origin(part) is PathLike for part in kinds):
        return PathLike
    if any(get_origin(part) is Sequence for part in kinds):
        return list
    if kinds == [bool]:
        return bool
    is_number = (int in kinds and str not in kinds) or any(isinstance(choice, int) for choice in choices)
    return int if is_number else str


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (types.UnionType, Union) else (kind,)
