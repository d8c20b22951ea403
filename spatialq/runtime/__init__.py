"""What kernels run on: threads, the GPU, and the cache of compiled functions."""
