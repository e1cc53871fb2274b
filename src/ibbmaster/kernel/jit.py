"""`jit`: how the functions of this package are compiled by Numba. It keeps nothing: see `ibbmaster.kernel.emitting`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile without the interpreter's lock, and without counting references; once for constants and other numbers."""
    dispatcher = njit(nogil=True, _nrt=False, **options)(function)
    template_for = dispatcher.get_call_template
    dispatcher.get_call_template = lambda taken, named: template_for(
        tuple(map(types.unliteral, taken)), {name: types.unliteral(kind) for name, kind in named.items()}
    )
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """Compile into each caller. LLVM does that: Numba would find the types of a body anew at each call."""
    return jit(function, forceinline=True)
