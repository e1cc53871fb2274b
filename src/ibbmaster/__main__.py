"""`python -m ibbmaster` is `ibbmaster`."""

import sys

from ibbmaster.cli.main import program

sys.exit(program())
