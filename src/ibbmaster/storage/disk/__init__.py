"""Directories of files: the seam through which everything else reads and writes."""
