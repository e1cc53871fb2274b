"""The kernels, compiled by a C compiler: what Python says of them becomes a header."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from enum import EnumType
from pathlib import Path
from typing import Any

from .entries import ARRAYS, FACTS, SOURCES, Entries, FieldShape, Shape, digest, kernel_names, library, shapes_of

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O3", "-fwrapv", "-fno-strict-aliasing", "-shared", "-fPIC")
CPUS = {  # with an instruction for CRC-32C, as compilers of systems call them, and as Zig does
    "x86_64": ("-march=x86-64-v2", "-march=x86_64_v2"),
    "aarch64": ("-march=armv8-a+crc", "-mcpu=generic+crc"),
}
_SIZES = {1: "size", 2: "rows, columns"}
_C_TYPES = {"uint8": "uint8_t", "int32": "int32_t", "int64": "int64_t"}


class BuildError(Exception):
    """There is no compiler, or it has refused the sources."""


def header() -> str:
    """`fields.h`: constants, enumerations, and what each kernel is given."""
    return "\n".join(["/* Made by ibbmaster.kernel.building. */", "#include <stdint.h>", *_lines(), ""])


def build(machine: str = platform.machine(), *, is_portable: bool = False) -> Path:
    """Returns the library; `is_portable`: by Zig, for glibc 2.28 and later. Raises BuildError: that fails here."""
    target = library(machine)
    compile_library(SOURCES / "kernels.c", target, machine, f'-DDIGEST="{digest()}"', is_portable=is_portable)
    return target


def compile_library(source: Path, target: Path, machine: str, *more: str, is_portable: bool = False) -> None:
    """Compile a source that knows `kernels.h`. Raises BuildError."""
    with tempfile.TemporaryDirectory(prefix="ibbmaster-kernels-") as scratch:
        Path(scratch, "fields.h").write_text(header())
        made = target.with_name(f"{target.name}.{os.getpid()}")
        command = [*_compiler(machine, is_portable), *FLAGS, f"-I{scratch}", f"-I{SOURCES}"]
        try:
            done = subprocess.run([*command, *more, str(source), "-o", str(made)], capture_output=True, text=True)
        except OSError as error:
            raise BuildError(str(error)) from error
        if done.returncode:
            raise BuildError(done.stderr)
        made.replace(target)


def _compiler(machine: str, is_portable: bool) -> list[str]:
    """That of the system, or of the package `ziglang`, which also compiles for other machines."""
    if machine not in CPUS:
        raise BuildError(f"kernels are for {' and '.join(CPUS)}, and not for {machine}")
    own = os.environ.get("CC") or shutil.which("cc")
    if own and machine == platform.machine() and not is_portable:
        return [*own.split(), CPUS[machine][0]]
    try:
        importlib.import_module("ziglang")
    except ImportError:
        raise BuildError("no C compiler: install one as `cc`, or the package ziglang") from None
    return [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.2.28", CPUS[machine][1]]


def _lines() -> Iterator[str]:
    facts: dict[str, Any] = {}
    for module in (importlib.import_module(f"ibbmaster.{fact}".replace("/", ".")) for fact in FACTS):
        facts |= vars(module)
    for name, value in facts.items():
        if isinstance(value, int) and not isinstance(value, bool) and name.isupper() and name[0] != "_":
            yield f"#define {name} INT64_C({int(value)})"
        elif isinstance(value, EnumType):
            every: dict[str, Any] = dict(value.__members__)
            members = {place: one for place, one in every.items() if isinstance(one, int)}
            *places, last = members or [""]
            if last in ("SIZE", "COLUMNS"):
                assert [*members.values()] == [*range(len(members))], name
                item = "int32_t" if name == "ChunkColumn" else "int64_t"
                yield f"typedef struct {{ {item} {', '.join(places).lower()}; }} {name.replace('Column', 'Row')};"
            elif members:
                prefix = "" if name == "Status" else f"{name}_"
                yield f"enum {{ {', '.join(f'{prefix}{place} = {int(one)}' for place, one in members.items())} }};"
    for name, array in ARRAYS.items():
        item = "void" if array.is_record else _C_TYPES[array.item]
        yield f"typedef struct {{ {item} *at; int64_t {_SIZES[array.dimensions]}; }} {name};"
    known: set[str] = set()
    for kernel in kernel_names():
        shapes = shapes_of(kernel)
        for shape in shapes.values():
            if isinstance(shape, FieldShape) and shape.kind.__name__ not in known:
                known.add(shape.kind.__name__)
                yield _struct(zip(shape.kind._fields, shape.fields, strict=True), shape.kind.__name__)
        yield _struct(shapes.items(), f"{kernel}_args")


def _struct(named: Iterable[tuple[str, Shape]], name: str) -> str:
    return f"typedef struct {{ {' '.join(f'{_c_type(shape)} {field};' for field, shape in named)} }} {name};"


def _c_type(shape: Shape) -> str:
    if isinstance(shape, FieldShape):
        return shape.kind.__name__
    return "int64_t" if shape is None else next(name for name, one in ARRAYS.items() if one == shape)


def is_current() -> bool:
    try:
        Entries(library())
        return True
    except (OSError, AttributeError):
        return False


if __name__ == "__main__" and not is_current():
    build()
