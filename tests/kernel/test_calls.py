"""What mypy is told of the kernels, against the kernels."""

from __future__ import annotations

import inspect

from ibbmaster.kernel import loading
from ibbmaster.kernel.calls import Kernels

NO_KERNELS = {"STEPS", "warm_up"}


def test_callers_are_told_of_every_kernel_and_of_all_it_takes():
    kernels = loading.load()
    assert kernels is not None
    told = {name: function for name, function in vars(Kernels).items() if not name.startswith("_")}
    assert set(told) == set(kernels.__all__) - NO_KERNELS
    for name, function in told.items():
        kernel = getattr(kernels, name)
        taken = list(inspect.signature(kernel.py_func).parameters)
        assert list(inspect.signature(function).parameters) == ["self", *taken], name
