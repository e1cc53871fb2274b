"""Kernels compiled by Numba into object files, which need neither Numba nor Python.

For each kernel there is an entry `ENTRY + its name`. It takes the words that stand for the
arguments (`ibbmaster.kernel.shapes`), puts those of the result into other words, and returns
0, or another number after an exception. Functions that only kernels call get no machine code of
their own, and are optimised once, in what calls them: that would take more than half of the time.
"""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import codegen, config
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.np.arrayobj import populate_array

from ibbmaster.kernel.cpu import target
from ibbmaster.kernel.entries import ENTRY
from ibbmaster.kernel.parts import KERNELS, KernelPart
from ibbmaster.kernel.shapes import FieldShape, ItemShape, Shape, shapes_of

Heard = Callable[[str, float], object]  # what was done, and how many seconds of a CPU it took
LINKING = "machine code"
_WORD = ir.IntType(64)
_STATUS = ir.IntType(32)


class _Library(codegen.AOTCodeLibrary):
    """Code of one function that was compiled, or of all that are put together."""

    is_whole = False

    def _optimize_final_module(self) -> None:
        if self.is_whole:
            super()._optimize_final_module()

    def get_pointer_to_function(self, name: str) -> int:
        """Nothing is called here."""
        self._ensure_finalized()
        return 0


class _Codegen(codegen.AOTCPUCodegen):
    _library_class = _Library

    def _init(self, module: Any) -> None:
        """Nothing that is emitted here is run, so that it may be for a CPU and a system of another kind."""
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        triple, cpu, features = target()
        self._tm = llvm.Target.from_triple(triple).create_target_machine(
            cpu=cpu, features=features, opt=config.OPT, reloc="pic", codemodel="default"
        )
        self._target_data = self._tm.target_data
        self._data_layout = str(self._target_data)
        self._loopvect, self._opt_level = False, 0  # of what is done before all is put together

    def _create_empty_module(self, name: str) -> Any:
        module = super()._create_empty_module(name)
        module.triple = target().triple
        return module

    def set_env(self, name: str, env: object) -> None:
        """No kernel looks at Python's objects."""


class KernelEmitter:
    """Compiles kernels; in this process no function that Numba compiles can be called after that."""

    def __init__(self) -> None:
        gc.disable()  # a third of the time: nothing of what the compiler makes is garbage until it ends
        self._context = cpu_target.target_context
        self._context._internal_codegen = _Codegen(__name__)
        self._context.create_cpython_wrapper = self._context.create_cfunc_wrapper = lambda *_, **__: None

    def emit(self, part: KernelPart, heard: Heard = lambda name, seconds: None) -> bytes:
        """The object file of a part."""
        with global_compiler_lock:
            library = self._context.codegen().create_library(f"{ENTRY}{part}")
            library.is_whole = True
            for kernel, module in KERNELS[part].items():
                begun = time.process_time()
                self._add(library, kernel, module)
                heard(kernel, time.process_time() - begun)
            begun = time.process_time()
            library.finalize()
            code: bytes = library.emit_native_object()
            heard(LINKING, time.process_time() - begun)
            return code

    def _add(self, library: Any, kernel: str, module: str) -> None:
        dispatcher = getattr(importlib.import_module(module), kernel)
        taken = tuple(_type_of(shape) for shape in shapes_of(kernel))
        dispatcher.compile(taken)
        compiled = dispatcher.overloads[taken]
        library.add_ir_module(self._entry(kernel, compiled.fndesc))
        library.add_linking_library(compiled.library)

    def _entry(self, kernel: str, described: Any) -> Any:
        """The code that calls a kernel with arguments that it reads from words."""
        context = self._context
        module = context.create_module(f"entry of {kernel}")
        kind = context.call_conv.get_function_type(described.restype, described.argtypes)
        called = ir.Function(module, kind, described.llvm_func_name)
        words = _WORD.as_pointer()
        entry = ir.Function(module, ir.FunctionType(_STATUS, [words, words]), ENTRY + kernel)
        builder = ir.IRBuilder(entry.append_basic_block())
        given = _words(builder, entry.args[0])
        arguments = [_argument(context, builder, kind, given) for kind in described.argtypes]
        status, result = context.call_conv.call_function(
            builder, called, described.restype, described.argtypes, arguments
        )
        for index, value in enumerate(_results(builder, described.restype, result)):
            builder.store(value, builder.gep(entry.args[1], [_WORD(index)]))
        builder.ret(status.code)
        return module


def _type_of(shape: Shape) -> Any:
    if isinstance(shape, ItemShape):
        return types.Array(getattr(types, shape.item), shape.dimensions, "C")
    if isinstance(shape, FieldShape):
        kinds = [_type_of(field) for field in shape.fields]
        return types.BaseTuple.from_types(kinds, shape.kind)
    return types.int64


def _words(builder: Any, pointer: Any) -> Iterator[Any]:
    """One word after the other."""
    index = 0
    while True:
        yield builder.load(builder.gep(pointer, [_WORD(index)]))
        index += 1


def _argument(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_argument(context, builder, one, words) for one in kind.types])
    if not isinstance(kind, types.Array):
        return next(words)
    array = context.make_array(kind)(context, builder)
    address = next(words)
    item = context.get_data_type(kind.dtype)
    item_bytes = context.get_abi_sizeof(item)
    sizes = [next(words) for _ in range(kind.ndim)]
    strides = [_WORD(item_bytes)]
    for size in reversed(sizes[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    populate_array(
        array,
        data=builder.inttoptr(address, item.as_pointer()),
        shape=sizes,
        strides=strides,
        itemsize=_WORD(item_bytes),
        meminfo=None,
    )
    return array._getvalue()


def _results(builder: Any, kind: Any, value: Any) -> list[Any]:
    """What is returned, as words."""
    if kind == types.none:
        return []
    if isinstance(kind, types.BaseTuple):
        return [
            word
            for index, one in enumerate(kind.types)
            for word in _results(builder, one, builder.extract_value(value, index))
        ]
    is_signed = getattr(getattr(kind, "dtype", kind), "signed", False)
    if value.type.width == _WORD.width:
        return [value]
    return [builder.sext(value, _WORD) if is_signed else builder.zext(value, _WORD)]
