"""An archive of a log in an object store: segments, and a manifest that says what they hold."""
