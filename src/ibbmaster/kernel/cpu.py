"""The CPU that kernels are compiled for: the one here, or one that the environment names."""

from __future__ import annotations

import functools
import os

import llvmlite.binding as llvm

CPU_NAME, CPU_FEATURES = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"  # environment variables of Numba
LEVELS = {  # of x86-64, and what is asked for here of all that each has
    "x86-64-v2": frozenset({"sse4.2"}),
    "x86-64-v3": frozenset({"sse4.2", "avx2"}),
    "x86-64-v4": frozenset({"sse4.2", "avx2", "avx512f"}),
}


@functools.cache
def target() -> tuple[str, str]:
    """Its name and features, as LLVM has them. Where one is named, it has only the features that are named, too."""
    name, features = os.environ.get(CPU_NAME), os.environ.get(CPU_FEATURES)
    if name is None:
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten() if features is None else features
    return name, features or ""


def has(*features: str) -> bool:
    """Whether code may use instructions: where the CPU has none, asking for them ends the process."""
    name, all_features = target()
    present = {feature[1:] for feature in all_features.split(",") if feature.startswith("+")}
    return present.union(LEVELS.get(name, ())).issuperset(features)
