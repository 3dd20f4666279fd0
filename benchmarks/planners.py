"""``python -m benchmarks.planners``: liveput against reactive in local runs, hour by hour.

The same recordings, seeds and machine, in turn; some ten minutes. Workers share its cores, so that
what is compared is what the changes themselves cost, not what more instances would train.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.model import EXAMPLE
from benchmarks.report import Row, median, print_table

HOURS = (("p3-dense-8", None), ("p3", "hadp"), ("p3", "ladp"))
PLANNERS = ("liveput", "reactive")
ROUNDS = 2
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
        command = [sys.executable, "-m", "parcae_cli.main", "local", str(EXAMPLE / "job.yaml")]
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
