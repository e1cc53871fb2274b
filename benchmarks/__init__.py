"""What the project measures about itself, beside peers and the limits of the machine."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "interop"))  # `lanes`: the real servers of the tests
