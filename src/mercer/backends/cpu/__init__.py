"""Kernel matrices on the CPU: compiled loops on our own threads, NumPy arrays in and out."""
