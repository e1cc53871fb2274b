"""The fast path of a dump: blocks of pages become blocks of packets, shared by all replicas at the same place."""
