"""What this project measures of itself: `python -m benchmarks.NAME` in a checkout. Only ratios of one run count."""
