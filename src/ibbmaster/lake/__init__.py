"""Jobs over whole archives, in Arrow or on Spark (extra `spark`): tables as they were, exported, or kept in a lake."""
