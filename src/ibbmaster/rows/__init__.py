"""What a log tells of rows beyond their bytes: what ALTER TABLE makes of values, and how versions fit together."""
