"""A log that is played: it grows as its recording did, faster, step by step, or again and again."""
