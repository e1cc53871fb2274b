"""What does a job of `ibbmaster lake`: Spark, here or on a cluster, or this process."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import ibbmaster
from ibbmaster.cli.arguments import expect_log
from ibbmaster.errors import ConfigurationError
from ibbmaster.extras import needed_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ibbmaster.arrow.read_options import ReadOptions

CLUSTERS = ("spark://", "yarn", "k8s://", "local-cluster")
ARROW_BYTES_MAX = 512 << 20  # of a log that is read without Spark unless that is asked for


@contextmanager
def session_of(args: argparse.Namespace, name: str) -> Iterator[SparkSession]:
    """A session for one job; what Spark says of an error is cut down to its cause."""
    from ibbmaster.lake.failure import plain_errors
    from ibbmaster.lake.session import close_session, open_session, quiet_logging

    settings = dict(pair_of(text, "--conf") for text in args.conf)
    importlib.import_module("pyspark.sql")
    expect_log(args.directory)  # Spark takes ten seconds to start
    with plain_errors(), quiet_logging(), code_of_workers(args) as shipping:
        session = open_session(args.master, name=f"ibbmaster lake {name}", settings={**shipping, **settings})
        try:
            yield session
        finally:
            close_session(session)


def code_of_workers(args: argparse.Namespace) -> AbstractContextManager[Mapping[str, str]]:
    """The settings of Spark by which workers get the code of `--archives`.

    Raises:
        ConfigurationError: there is no cluster that could unpack it.
    """
    from ibbmaster.lake.worker_code import settings_for

    if args.archives is None:
        return nullcontext({})
    if not (args.master or "").startswith(CLUSTERS):
        raise ConfigurationError(f"--archives is for a --master of a cluster ({', '.join(CLUSTERS)})")
    return settings_for(args.archives, ibbmaster.__version__)


def is_for_arrow(args: argparse.Namespace) -> bool:
    """Whether a job is done by this process, without Spark; `chosen` of `args` says it where that is decided here.

    Raises:
        ConfigurationError: there is a setting of Spark for it.
        StoreError: there is no log.
    """
    args.chosen = None
    expect_log(args.directory)
    has_settings = args.master is not None or args.archives is not None or bool(args.conf)
    is_based = args.base is not None
    if (args.engine == "arrow" or is_based) and has_settings:
        option = "--base" if is_based else "--engine arrow"
        raise ConfigurationError(f"{option}: --master, --archives and --conf are for Spark")
    if is_based:
        if args.engine == "spark":
            raise ConfigurationError("--base is read in this process: --engine arrow")
        return True
    if args.engine is not None:
        return bool(args.engine == "arrow")
    if has_settings:
        return False
    with ibbmaster.open(args.directory) as log:
        size = log.stored_bytes
    name = "arrow" if size <= ARROW_BYTES_MAX else "spark"
    args.chosen = f"engine {name}, for {size / (1 << 20):.1f} MB of log"
    return name == "arrow"


def arrow_options(args: argparse.Namespace, **given: str) -> ReadOptions:
    """The options of a job that this process does."""
    with needed_for("--engine arrow"):
        import pyarrow  # noqa: F401  # wanted by what is imported later

    from ibbmaster.kernel.loading import do_pay
    from ibbmaster.kernel.parts import KernelSet
    from ibbmaster.spark.options import parse_options, schema_options

    with ibbmaster.open(args.directory) as log:
        pays = do_pay(KernelSet.READ, log.stored_bytes)
    declared = {}
    if "table" in given:
        declared = schema_options(args.schema or None, args.lower_case_table_names)
        declared["zeroDates"] = args.zero_dates
    options = parse_options({"path": args.directory, **declared, **given})
    return dataclasses.replace(options, uses_kernels=pays)


def pair_of(text: str, what: str) -> tuple[str, str]:
    """NAME=VALUE.

    Raises:
        ConfigurationError: there is no equals sign.
    """
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise ConfigurationError(f"{what}: {text!r} is not NAME=VALUE")
    return name, value
