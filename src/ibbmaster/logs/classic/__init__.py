"""Traditional binlog files as a log like any other, and their conversion to `.ibb`."""
