"""Geometry that kernels of several functions share: `.py` for the CPU, `.cu`/`.cuh` beside it."""
