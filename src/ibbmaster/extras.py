"""The extra of this package that installs a missing module, and the error that names it."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from .errors import ConfigurationError

_BRINGS = {  # extra -> modules of it that are imported here, or that these need
    "spark": ("pyspark", "pandas", "pyspark_ibb"),
    "arrow": ("pyarrow", "numpy"),
    "zstd": ("backports", "lz4", "brotli"),
    "objects": ("obstore",),
    "lake": ("deltalake", "pyiceberg", "sqlalchemy"),
    "metrics": ("prometheus_client", "h11"),
    "demo": ("pymysqlreplication",),
}
EXTRAS = {module: extra for extra, modules in _BRINGS.items() for module in modules}


class ExtraMissingError(ConfigurationError):
    """The call needs an extra of this package that is not installed, or not completely."""


def extra_for(error: ModuleNotFoundError) -> str | None:
    """The extra that installs a missing module, or a module that needs it; None if none does."""
    missing = _top(error.name or "")
    if missing in EXTRAS:
        return EXTRAS[missing]
    return next((EXTRAS[name] for name in _importing(error.__traceback__) if name in EXTRAS), None)


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Name the extra where the block misses a module. Raises ExtraMissingError: an extra installs that module."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = extra_for(error)
        if extra is None:
            raise
        raise ExtraMissingError(
            f"{what} needs the extra {extra!r} (no module {_top(error.name or '?')}): pip install 'ibbmaster[{extra}]'"
        ) from error


def _top(module: str) -> str:
    return module.partition(".")[0]


def _importing(traceback: TracebackType | None) -> Iterator[str]:
    """The packages whose code was being imported, the outermost first."""
    while traceback is not None:
        yield _top(str(traceback.tb_frame.f_globals.get("__name__", "")))
        traceback = traceback.tb_next
