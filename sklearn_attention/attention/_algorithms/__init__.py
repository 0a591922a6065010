"""The ways to compute kernel sums, each in one file."""
