"""SELECT over tables: planned, its rows sent as they are stored, or computed, joined and sorted by SQLite."""
