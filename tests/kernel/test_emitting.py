"""Object files: each function is compiled once, and what comes out needs neither Numba nor Python."""

EMIT = """
import re, sys
from numba.core.dispatcher import Dispatcher
from ibbmaster.kernel.emitting import KernelEmitter
from ibbmaster.kernel.parts import KernelPart
import llvmlite.binding as llvm
code = KernelEmitter().emit(KernelPart.CHECK)
for name, module in list(sys.modules.items()):
    if name.startswith("ibbmaster.kernel."):
        for value in vars(module).values():
            if isinstance(value, Dispatcher) and len(value.signatures) > 1:
                print("compiled twice:", value.__name__, value.signatures)
print("entry", b"ibbmaster_check_table" in code)
print("needs Python", re.search(rb"\\0(_?Py[A-Z]|NRT_|numba_)", code))
"""


def test_each_function_is_compiled_once_and_needs_neither_numba_nor_python(said_by):
    assert said_by(EMIT).splitlines() == ["entry True", "needs Python None"]
