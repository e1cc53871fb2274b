"""Real MariaDB servers and tools for the tests: a lane is one MariaDB version and its programs."""
