"""The processor for which a wheel brings compiled kernels: most others have all that it has.

`spatialq/workflows/warming.py` fills the folder before a wheel is built. A checkout has none, nor
has a wheel that is built without it, and then functions are compiled when they are called first.
"""

import functools
import platform
from pathlib import Path

from llvmlite import binding
from numba.core import config

FOLDER = Path(__file__).parents[1] / "compiled" / "cpu"
X86_64_V3 = (
    "x86-64-v3",
    (
        "+avx2,+avx,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe,+popcnt,+sse4.2,+sse4.1,+ssse3,+sse3,+sse2,"
        "+xsave,+cx16,+sahf,+fxsr,+mmx,+sse,+cmov,+cx8"
    ),
)
BASELINES = {"x86_64": X86_64_V3, "amd64": X86_64_V3}
"""Machine, as Python calls it: processor and features, as LLVM does; others have `generic`."""


def baseline() -> tuple[str, str]:
    """Name the processor and its features as LLVM does."""
    return BASELINES.get(platform.machine().lower(), ("generic", ""))


@functools.cache
def runs_here() -> bool:
    """Whether this processor has all features of the baseline, and none is named by the user.

    Who names a processor in the environment (`NUMBA_CPU_NAME`) wants code for that one.
    """
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return False
    needed = [feature[1:] for feature in baseline()[1].split(",") if feature]
    try:
        has = binding.get_host_cpu_features() if needed else {}
    except RuntimeError:  # LLVM does not know the processor
        return False
    return all(has.get(feature) for feature in needed)
