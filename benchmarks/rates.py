"""Make the planner's `rates.json` from the results of the GPU benchmarks, which time the CPU, too.

python benchmarks/rates.py

The slowest input of a function counts on either device, so that estimates err on the same side.
`results/threads.json` (benchmarks/threads.py) gives the shares that threads do not shorten.
"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RATES = ROOT / "spatialq" / "planner" / "rates.json"
RESULTS = ROOT / "benchmarks" / "results"
START_CPU = 0.001


def rounded(value):
    return float(f"{value:.3g}")


def rates_of(result, serial_share=None):
    """Rates of both devices from the inputs (`clouds`) of a result.

    Where these are of several sizes, the largest count: they occupy the whole GPU. What the
    smaller ones take beyond that is the start. Where a call with arrays of the host is as fast as
    one with arrays of the GPU, it is the time of the steps, and the transfer is a part of them.
    """
    clouds = result["clouds"]
    small_ms = result["small_call_ms"]
    sizes = [cloud["points"] for cloud in clouds]
    if max(sizes) >= 10 * min(sizes):
        largest = max(sizes)
        slowest = max(on_gpu(c) for c in clouds if c["points"] == largest) / largest
        small_ms = max(small_ms, *(on_gpu(c) - slowest * c["points"] for c in clouds))
        clouds = [cloud for cloud in clouds if cloud["points"] == largest]
    transfers = [
        1e3 * cloud["bytes"] / (cloud["host_to_host_ms"] - cloud["device_ms"])
        for cloud in clouds
        if cloud["host_to_host_ms"] > cloud["device_ms"]
    ]
    steps = [cloud.get("steps", cloud["points"]) for cloud in clouds]
    cpu = {
        "steps_per_second": slowest_rate(steps, [cloud["cpu_ms"] for cloud in clouds]),
        "start_seconds": START_CPU,
        "threads": result["cpu_threads"],
    }
    gpu = {"steps_per_second": slowest_rate(steps, map(on_gpu, clouds))}
    if transfers:
        gpu["bytes_per_second"] = rounded(min(transfers))
    gpu["start_seconds"] = rounded(small_ms / 1e3)
    if serial_share is not None:
        cpu["serial_share"] = rounded(serial_share)
    return {"cpu": cpu, "gpu": gpu}


def on_gpu(cloud):
    """Milliseconds of the steps on the GPU."""
    return min(cloud["device_ms"], cloud["host_to_host_ms"])


def slowest_rate(steps, ms):
    return rounded(min(1e3 * n / each for n, each in zip(steps, ms, strict=True)))


def main():
    results = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    scaling = results.pop("threads", {"functions": []})["functions"]
    results.pop("run_overhead", None)
    shares = {each["name"]: each["serial_share"] for each in scaling}
    figures = {name: rates_of(each, shares.get(name)) for name, each in results.items()}
    devices = {result["device"] for result in results.values()}
    dates = max(result["date"] for result in results.values())
    about = f"benchmarks/*_gpu.py on {', '.join(sorted(devices))} and its host, {dates}"
    RATES.write_text(json.dumps({"measured": about, "rates": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
