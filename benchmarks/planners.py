"""``make bench-planners``: liveput against reactive in local runs, hour by hour.

The same recordings, seeds and machine, in turn; twenty minutes. The model is paced
(:mod:`benchmarks.paced.paced`): its layers take a device's time and none of the CPU's, so that
more workers train more, although they share the machine's cores. A recorded minute takes a second,
so that a pause of 0.1 s counts as 6 s.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Row, median, print_table

HOURS = (("p3-dense-8", None), ("p3", "hadp"), ("p3", "ladp"))
PLANNERS = ("liveput", "reactive")
ROUNDS = 3
JOB = Path(__file__).with_name("paced") / "job.yaml"
SPEEDUP = 60


def main() -> None:
    rows, ratios = [], []
    for trace, segment in HOURS:
        found: dict[str, list[int]] = {planner: [] for planner in PLANNERS}
        for turn in range(ROUNDS):
            for planner in PLANNERS if turn % 2 else PLANNERS[::-1]:
                found[planner].append(_samples(trace, segment, planner))
        pairs = [a / b for a, b in zip(found["liveput"], found["reactive"], strict=True)]
        ratios += pairs
        name = f"{trace} {segment or ''}".strip()
        rows.append(
            Row(f"local run, {name}: samples, liveput / reactive", _spread(pairs), "", None)
        )
    middle = median(ratios)
    rows.append(Row("all of them", _spread(ratios), ">= 1", middle >= 1))
    print_table(rows)


def _samples(trace: str, segment: str | None, planner: str) -> int:
    with tempfile.TemporaryDirectory(prefix="parcae-bench-") as folder:
        command = [sys.executable, "-m", "parcae_cli.main", "local", str(JOB)]
        command += ["--trace", trace, "--speedup", str(SPEEDUP), "--out", f"{folder}/run"]
        command += ["--planner", planner, *(["--segment", segment] if segment else [])]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        summary = json.loads((Path(folder) / "run" / "summary.json").read_text())
    print(f"{trace} {segment or ''} {planner}: {summary['samples_committed']}", flush=True)
    return int(summary["samples_committed"])


def _spread(ratios: list[float]) -> str:
    return f"{median(ratios):.3f} ({min(ratios):.2f}-{max(ratios):.2f}, {len(ratios)} pairs)"


if __name__ == "__main__":
    main()
