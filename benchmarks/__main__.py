"""``python -m benchmarks``: run all, print the table."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["GLOO_SOCKET_IFNAME"] = "lo"

from benchmarks import changes, crews, metrics, planning, startup, step, transfer
from benchmarks.report import print_table


def main() -> None:
    rows, raw_bytes_per_s = transfer.run()
    rows = [
        *changes.run(raw_bytes_per_s),
        *crews.run(),
        *step.run(),
        *metrics.run(),
        *rows,
        *startup.run(),
    ]
    print_table([*rows, *planning.run()])


if __name__ == "__main__":
    main()
