"""The programs of adapters as modules: they lie outside of the package, under names that Python cannot import."""

import importlib.util
import sys
from types import ModuleType

from ibbmaster.scorecard.adapter import OURS


def adapter_module(adapter: str, name: str) -> ModuleType:
    """One program of an adapter, without running it."""
    spec = importlib.util.spec_from_file_location(f"adapter_{name}", OURS / adapter / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
