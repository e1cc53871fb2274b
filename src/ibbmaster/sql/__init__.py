"""SELECT over one table as its primary answers, byte by byte: kept rows chosen, ordered, counted, on the wire."""
