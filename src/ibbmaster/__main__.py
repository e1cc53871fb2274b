"""`python -m ibbmaster` is `ibbmaster`."""

import sys

from ibbmaster.commands.cli.main import program

sys.exit(program())
