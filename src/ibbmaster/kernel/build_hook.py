"""Has wheels, and checkouts that are installed as they are, carry the compiled kernels."""

import os
import platform
import re
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WHEEL_FOR = os.environ.get("IBBMASTER_WHEEL_FOR")


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Without a compiler that takes the sources, the package is one of Python alone, and slower. With the variable
    `IBBMASTER_WHEEL_FOR`, a kind of CPU, the wheel is for all Linux systems with glibc 2.28 and such a CPU."""

    def dependencies(self) -> list[str]:
        self._find_sources()
        from ibbmaster.kernel.building import CPUS

        needs_zig = WHEEL_FOR is not None or (platform.machine() in CPUS and shutil.which("cc") is None)
        return ["ziglang"] if needs_zig else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        self._find_sources()
        from ibbmaster.kernel.building import BuildError, build

        try:
            made = build(WHEEL_FOR or platform.machine(), is_portable=WHEEL_FOR is not None)
        except BuildError as error:
            if WHEEL_FOR is not None:
                raise
            self.app.display_warning(f"without compiled kernels: {error}")
            return
        build_data["artifacts"].append(str(made.relative_to(self.root)))
        build_data["pure_python"] = False
        system = re.sub(r"\W", "_", sysconfig.get_platform()) if WHEEL_FOR is None else f"manylinux_2_28_{WHEEL_FOR}"
        build_data["tag"] = f"py3-none-{system}"

    def _find_sources(self) -> None:
        if (sources := str(Path(self.root, "src"))) not in sys.path:
            sys.path.insert(0, sources)
