"""Tables of a log kept as tables of a lake: run again and again, each run brings what is new, once, and a verdict.

`job` goes through the tables; `source` is the log as one run sees it; `rows` finds the next step of a table; `delta`
and `iceberg`, each a `target`, commit that with its `state`.
"""
