"""Objects whose keys and values are the user's own: arguments of their function, a pod's template.

YAML can say more than JSON (dates, not-a-number, keys that are no text, endless aliases), and both
can nest deeper than other programs read. Such objects are refused here, with a sentence, because
they would change or break on their way from program to program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pydantic import BeforeValidator

MAX_DEPTH = 64
MAX_VALUES = 100_000

_Place = tuple[str, Any]
"""The path of a value in the object, and the value."""


def _travels(value: Any) -> Any:
    """The value itself, if JSON says the same everywhere.

    Raises:
        ValueError: it does not; the message names the place and the remedy.
    """
    level, seen = [("", value)], 0
    for _ in range(MAX_DEPTH + 1):
        level = list(islice(_children(level), MAX_VALUES + 1))
        seen += len(level)
        if seen > MAX_VALUES:
            raise ValueError(f"holds more than {MAX_VALUES} values; keep data in files")
        if not level:
            return value
    raise ValueError(f"is nested deeper than {MAX_DEPTH} levels; flatten it")


def _children(level: list[_Place]) -> Iterator[_Place]:
    for path, value in level:
        match value:
            case dict():
                for key, child in value.items():
                    _check_key(path, key)
                    yield (f"{path}.{key}" if path else key)[:200], child
            case list():
                for index, child in enumerate(value):
                    yield f"{path}[{index}]"[:200], child
            case _ if path:  # what is no object at all is the field's own error
                _check(path, value)


def _check_key(path: str, key: Any) -> None:
    if not isinstance(key, str):
        raise ValueError(
            f"{path} has the key {key!r:.60}, which is no text; write it in quotes".lstrip()
        )
    _check(f"a key of {path}" if path else "a key", key)


def _check(path: str, value: Any) -> None:
    match value:
        case None | bool():
            return
        case int() if -(2**63) <= value < 2**63:
            return
        case int():  # Kubernetes would round it to a float
            raise ValueError(f"{path} is a whole number of more than 64 bits; write it in quotes")
        case float() if math.isfinite(value):
            return
        case float():
            raise ValueError(f"{path} is {value}, which JSON does not have; give a number or text")
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(
                    f"{path} is no Unicode text: it holds half of a surrogate pair"
                ) from None
        case _:
            kind = type(value).__name__
            raise ValueError(
                f"{path} is a {kind} ({value!s:.60}), which JSON does not have; write it in quotes"
            )


TRAVELS = BeforeValidator(_travels)
"""For ``Annotated``, after the bounds of the object."""
