"""The CPU that kernels are compiled for: the one here, or one that the environment names."""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

CPU_NAME, CPU_FEATURES = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"  # environment variables of Numba
_V2 = frozenset({"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
FEATURES_OF_LEVELS = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}  # as LLVM names them


class Target(NamedTuple):
    """What code is compiled for: the kind of system, the CPU, and its features, as LLVM names them."""

    triple: str
    cpu: str
    features: str


_chosen: Target | None = None


def choose(wanted: Target) -> None:
    """Have this process compile for another target; it must run none of that, and not have imported a kernel yet."""
    global _chosen
    _chosen = wanted
    target.cache_clear()


@functools.cache
def target() -> Target:
    """The CPU. Where one is named, it has only the features that are named, too.

    Raises ImportError: LLVM is not installed.
    """
    if _chosen is not None:
        return _chosen
    import llvmlite.binding as llvm

    triple = str(llvm.get_process_triple())
    name, features = os.environ.get(CPU_NAME), os.environ.get(CPU_FEATURES)
    if name is not None:
        return Target(triple, name, features or "")
    return Target(
        triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten() if features is None else features
    )


def has(*features: str) -> bool:
    """Whether code may use instructions: where the CPU has none, asking for them ends the process."""
    _, name, all_features = target()
    present = {feature[1:] for feature in all_features.split(",") if feature.startswith("+")}
    return present.union(FEATURES_OF_LEVELS.get(name, ())).issuperset(features)
