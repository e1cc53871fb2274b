"""`python -m ibbmaster` is `ibbmaster`."""

import sys

from ibbmaster.cli.main import main

sys.exit(main())
