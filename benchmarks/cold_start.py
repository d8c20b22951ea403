"""How long a new process takes: importing, and the first `owm_ground`, compiled or from the cache.

python benchmarks/cold_start.py
"""

import os
import subprocess
import sys
import tempfile
import time

IMPORT = "import spatialq"
CALL = """
import spatialq
con = spatialq.connect()
con.execute("CREATE TABLE points AS SELECT range AS point_id, random() * 300 AS x, "
            "random() * 300 AS y, random() AS z FROM range(300000)")
con.sql("FROM owm_ground('points')").fetchall()
"""


def run(code, **environment):
    clock = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
    return time.perf_counter() - clock


def main():
    bare = min(run("pass") for _ in range(5))
    with tempfile.TemporaryDirectory() as cache:
        print(f"import spatialq              {min(run(IMPORT) for _ in range(5)) - bare:.2f} s")
        print(f"first process, compiling     {run(CALL, NUMBA_CACHE_DIR=cache):.2f} s")
        print(f"second process, from cache   {run(CALL, NUMBA_CACHE_DIR=cache):.2f} s")


if __name__ == "__main__":
    main()
