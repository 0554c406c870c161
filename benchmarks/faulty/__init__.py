"""What `benchmarks/faults.py` is made of: the scene of a trial, the faults, and what must hold afterwards."""
