"""The algorithms for kernel sums, each in one file; `_reduce.py` chooses among them."""
