"""The primary that replicas connect to: sockets, TLS, time and the waiting, on trio.

Everything that decides lives in `wire` and `dump`; what is here only moves bytes.
"""
