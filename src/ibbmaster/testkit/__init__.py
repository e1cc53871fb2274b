"""A primary for tests of CDC consumers: it writes what the test says, and misbehaves on cue."""
