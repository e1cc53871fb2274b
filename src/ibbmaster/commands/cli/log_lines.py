"""What commands that run for long say meanwhile."""

import logging
import sys


def begin_log(*, is_verbose: bool) -> None:
    """Log to standard error; only our own lines are verbose. Records lack thread, process and place in the code, which
    would take half their time."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # leaves out the place, as logging/__init__.py says
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    if is_verbose:
        logging.getLogger("ibbmaster").setLevel(logging.DEBUG)
