"""Tables of a log kept as tables of a lake: run again and again, each run brings what is new, once, and a verdict.

`job` goes through the tables; `source` is the log as one run sees it; `rows` says
what a table becomes; `delta` and `iceberg`, each a `target`, commit that together with its `state`, the latter by
`matching` of rows; `table_list` is the list of all states.
"""
