"""What mypy is told of the kernels, against the kernels."""

import importlib
import inspect

from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.parts import KERNELS
from ibbmaster.kernel.shapes import shapes_of


def test_callers_are_told_of_every_kernel_and_of_all_it_takes():
    modules = {name: module for part in KERNELS.values() for name, module in part.items()}
    assert set(Kernels.__annotations__) == set(modules)
    for name, module in modules.items():
        kernel = getattr(importlib.import_module(module), name)
        assert len(shapes_of(name)) == len(inspect.signature(kernel.py_func).parameters), name
