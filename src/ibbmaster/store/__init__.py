"""Directories of binlog files: reading whole event groups, finding positions, writing. Knows no conversation."""
