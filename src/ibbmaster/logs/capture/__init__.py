"""What reads a running primary over the replication protocol."""
