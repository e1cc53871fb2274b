"""Numbers and checksums; knows no file and no packet."""
