"""What event groups go through between a log and its readers: group in, group out, the GTID kept.

`engine` makes of a log and its stages a log again. What a stage does follows from one group alone, so any reader may
begin anywhere. Pure: files and clocks are the log's."""
