"""Replication events: the bytes a binlog is about. Pure; to an event there is no page."""
