"""Has wheels, and checkouts that are installed as they are, carry the compiled kernels."""

import platform
import re
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Without a compiler that takes the sources, the package is one of Python alone, and slower."""

    def dependencies(self) -> list[str]:
        self._find_sources()
        from ibbmaster.kernel.building import CPUS

        return ["ziglang"] if platform.machine() in CPUS and shutil.which("cc") is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        self._find_sources()
        from ibbmaster.kernel.building import BuildError, build

        try:
            made = build()
        except BuildError as error:
            self.app.display_warning(f"without compiled kernels: {error}")
            return
        build_data["artifacts"].append(str(made.relative_to(self.root)))
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + re.sub(r"\W", "_", sysconfig.get_platform())

    def _find_sources(self) -> None:
        if (sources := str(Path(self.root, "src"))) not in sys.path:
            sys.path.insert(0, sources)
