"""The runtime of kernels: threads, the GPU, and the cache of compiled functions."""
