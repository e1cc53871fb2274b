"""How real consumers of binlogs get through faults: each a small program around its library, graded by what arrived."""
