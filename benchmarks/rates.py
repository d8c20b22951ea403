"""Make the planner's `rates.json` of the results of the GPU benchmarks (which time the CPU, too).

python benchmarks/rates.py

The slowest cloud of a function counts on either device, so that estimates err on the same side.
"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RATES = ROOT / "spatialq" / "planner" / "rates.json"
RESULTS = ROOT / "benchmarks" / "results"
START_CPU = 0.001


def rounded(value):
    return float(f"{value:.3g}")


def rates_of(result):
    """Rates of both devices from the clouds of a result.

    Where they are of several sizes the largest count: there the GPU is full. What the smaller
    ones take above that is the start.
    """
    clouds = result["clouds"]
    small_ms = result["small_call_ms"]
    sizes = [cloud["points"] for cloud in clouds]
    if max(sizes) >= 10 * min(sizes):
        most = max(sizes)
        slowest = max(c["device_ms"] for c in clouds if c["points"] == most) / most
        small_ms = max(small_ms, *(c["device_ms"] - slowest * c["points"] for c in clouds))
        clouds = [cloud for cloud in clouds if cloud["points"] == most]
    device_ms = [cloud["device_ms"] for cloud in clouds]
    host_ms = [cloud["host_to_host_ms"] for cloud in clouds]
    travel = [
        cloud["bytes"] / (host - device) * 1e3
        for cloud, host, device in zip(clouds, host_ms, device_ms, strict=True)
    ]
    steps = [cloud.get("steps", cloud["points"]) for cloud in clouds]
    return {
        "cpu": {
            "steps_per_second": rounded(
                min(1e3 * n / cloud["cpu_ms"] for n, cloud in zip(steps, clouds, strict=True))
            ),
            "start_seconds": START_CPU,
            "threads": result["cpu_threads"],
        },
        "gpu": {
            "steps_per_second": rounded(
                min(1e3 * n / ms for n, ms in zip(steps, device_ms, strict=True))
            ),
            "bytes_per_second": rounded(min(travel)),
            "start_seconds": rounded(small_ms / 1e3),
        },
    }


def main():
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    newest = {result["function"]: result for result in results}
    figures = {name: rates_of(result) for name, result in sorted(newest.items())}
    devices = {result["device"] for result in newest.values()}
    dates = max(result["date"] for result in newest.values())
    about = f"benchmarks/*_gpu.py on {', '.join(sorted(devices))} and its host, {dates}"
    RATES.write_text(json.dumps({"measured": about, "rates": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
