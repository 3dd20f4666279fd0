"""Waits that the wall clock measures, also between programs. Pure.

Plans, crashes and histories are stamped with the time of whoever wrote them, and outlive them. The
next operator may run on a node whose clock differs, and a clock can be set back: no wait may last
for the hours that two clocks are apart.
"""

from __future__ import annotations


def is_over(since_unix_s: float, now_unix_s: float, wait_s: float) -> bool:
    """Whether ``wait_s`` have passed, or the stamp lies so far ahead that it says nothing.

    Between the two it is waited for twice as long at most.
    """
    return abs(now_unix_s - since_unix_s) >= wait_s
