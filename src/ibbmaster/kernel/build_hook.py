"""Has wheels, and checkouts that are installed as they are, carry the compiled kernels."""

import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Without a compiler that takes the sources, the package is one of Python alone, and slower."""

    def dependencies(self) -> list[str]:
        return [] if shutil.which("cc") else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        sys.path.insert(0, str(Path(self.root, "src")))
        from ibbmaster.kernel.building import BuildError, build

        try:
            made = build()
        except BuildError as error:
            self.app.display_warning(f"without compiled kernels: {error}")
            return
        build_data["artifacts"].append(str(made.relative_to(self.root)))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"


def _platform() -> str:
    import sysconfig

    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
