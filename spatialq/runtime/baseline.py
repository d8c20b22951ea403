"""The baseline processor, for which a wheel has compiled kernels: most machines have its features.

`spatialq/workflows/warming.py` fills the folder before a wheel is built. Where there is no folder,
as in a checkout, functions are compiled when they are first called.
"""

import platform
from pathlib import Path

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


def runs_here(features: str) -> bool:
    """Whether code for the baseline may run where Numba compiles for some features.

    Those are what the processor has, less what Numba or the user takes away, such as by
    `NUMBA_ENABLE_AVX`. Who names a processor (`NUMBA_CPU_NAME`) wants code for that one.
    """
    needed = {feature for feature in baseline()[1].split(",") if feature}
    return config.CPU_NAME is None and needed <= set(features.split(","))
