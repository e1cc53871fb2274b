"""`python -m ibbmaster` is `ibbmaster`."""

import sys

from .commands.cli.main import program

sys.exit(program())
