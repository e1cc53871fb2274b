"""What mypy is told of the kernels, against the kernels."""

import importlib
import inspect

from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.parts import KERNELS


def test_callers_are_told_of_every_kernel_and_of_all_it_takes():
    told = {name: function for name, function in vars(Kernels).items() if not name.startswith("_")}
    modules = {name: module for part in KERNELS.values() for name, module in part.items()}
    assert set(told) == set(modules)
    for name, function in told.items():
        kernel = getattr(importlib.import_module(modules[name]), name)
        taken = list(inspect.signature(kernel.py_func).parameters)
        assert list(inspect.signature(function).parameters) == ["self", *taken], name
