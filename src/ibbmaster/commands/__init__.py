"""What `ibbmaster` does on a command line.

- `info`: what is in a log, counted.
- `printing`: a log as text.
- `comparison`: two logs beside each other.
- `recorder`: an incident with a real primary as a scenario.
- `cli`: a thin module for each command.

May import: api, kernel, lake, logs, primary, replication, rows, schema, sqltext, storage, tables, testkit.
"""
