"""Compile the kernels for a baseline processor into the folder that a wheel takes them from.

What is compiled is what the tests of all kernels against their oracles call, by running them.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "spatialq" / "compiled" / "cpu"
X86_64_V3 = (
    "x86-64-v3",
    (
        "+avx2,+avx,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe,+popcnt,+sse4.2,+sse4.1,+ssse3,+sse3,+sse2,"
        "+xsave,+cx16,+sahf,+fxsr,+mmx,+sse,+cmov,+cx8"
    ),
)
BASELINES = {"x86_64": X86_64_V3, "amd64": X86_64_V3}
"""Machine, as Python calls it: processor and features, as LLVM does; others have `generic`."""


def main() -> None:
    """Fill the folder; a test that fails leaves none."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    cpu, features = BASELINES.get(platform.machine().lower(), ("generic", ""))
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "NUMBA_CPU_NAME": cpu}
        environment["NUMBA_CPU_FEATURES"] = features
        # one process: Numba numbers the files of a function without regard to other processes
        tests = [str(path) for path in sorted(ROOT.glob("tests/*/test_oracle.py"))]
        chosen = ["-m", "not (host or gpu or slow)", "--hypothesis-profile", "check"]
        command = [sys.executable, "-m", "pytest", "--quiet", *chosen, *tests]
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        FOLDER.mkdir(parents=True)
        # only the functions of the package: tests have kernels of their own
        for path in Path(folder).glob("*/*.nb?"):
            if "-spatialq." in path.name:
                shutil.copy(path, FOLDER)
    digests = {path.name: sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir()}
    manifest = {"cpu": cpu, "features": features, "digests": dict(sorted(digests.items()))}
    (FOLDER / "manifest.json").write_text(json.dumps(manifest, indent=1))


if __name__ == "__main__":
    main()
