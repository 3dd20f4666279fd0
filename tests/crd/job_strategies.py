"""Jobs as users may write them: right, at the edges, and hostile."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from parcae_api.job import MAX_INSTANCES

Document = dict[str, Any]
Path = tuple[str | int, ...]

names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)
words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8"), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def ints(low: int, high: int) -> st.SearchStrategy[int]:
    return st.sampled_from([low, high]) | st.integers(low, high)


def sometimes(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def jobs(draw: st.DrawFn) -> Document:
    """A job that is right, with any of its optional fields left out."""
    most = draw(ints(1, MAX_INSTANCES))
    spec = draw(
        sometimes(
            reduction=st.sampled_from(["exact", "fast"]),
            seed=ints(0, 2**31 - 1),
            threadsPerWorker=ints(1, 256),
            checkpoint=sometimes(
                everySteps=ints(1, 10**15), path=st.text("ä/-a", min_size=1, max_size=50)
            ),
            planning=sometimes(intervalSeconds=ints(1, 86_400), horizon=ints(1, 60)),
            suspend=st.booleans(),
            backoffLimit=ints(0, 100),
            ttlSecondsAfterFinished=ints(0, 2**31 - 1),
            template=st.just({})
            | st.fixed_dictionaries(
                {
                    "spec": st.fixed_dictionaries(
                        {"containers": st.lists(st.just({"name": "a", "x": [1]}), min_size=1)}
                    )
                },
                optional={"metadata": st.dictionaries(texts, json_values, max_size=3)},
            ),
        )
    )
    spec["instances"] = {"max": most} | draw(sometimes(min=ints(1, most)))
    if draw(st.booleans()):
        shallow = draw(ints(1, most))
        spec["pipeline"] = {"minStages": shallow, "maxStages": draw(ints(shallow, MAX_INSTANCES))}
    module = ".".join(draw(st.lists(words, min_size=1, max_size=3)))
    spec["entrypoint"] = {"function": f"{module}:{draw(words)}"} | draw(
        sometimes(args=st.dictionaries(texts, json_values, max_size=4), configMap=names)
    )
    return {
        "apiVersion": "parcae.dev/v1alpha1",
        "kind": "ParcaeJob",
        "metadata": {"name": draw(names)},
        "spec": spec,
    }


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


hostile_json = (
    json_values
    | st.sampled_from([-1, 0, 513, 2**31, 2**63, -(2**63) - 1, 1.5, 1e30, -0.0])
    | st.sampled_from(["", "\x00", "a\nb", "\u202eabc", "größe:a"])
    | st.sampled_from([{}, [], [{}], {"": ""}])
    | st.sampled_from([300, 5000]).map(lambda n: "ü" * n)
    | st.sampled_from([300, 5000]).map(lambda n: {"k" * n: 1})
    | st.sampled_from([30, 80]).map(nested)
)
"""Anything that JSON can say."""
hostile = (
    hostile_json
    | st.sampled_from([float("nan"), float("inf"), "\ud800", {1: 2}, {"\ud800": 1}, b"x", (1,)])
    | st.sampled_from([400, 5000]).map(lambda n: 10**n)
    | st.sampled_from([300, 1000]).map(nested)
    | st.just(200_000).map(lambda n: [0] * n)
    | st.just(200_000).map(lambda n: "a" * n)
)
"""Anything that YAML or Python can say."""


def places(value: Any, at: Path = ()) -> list[Path]:
    """The paths of all values within a document."""
    found = [at] if at else []
    children: Any = ()
    if isinstance(value, dict | list):
        children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in children:
        found += places(child, (*at, key))
    return found


@st.composite
def spoilt(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> tuple[Document, Path]:
    """A job with one value replaced, added or removed, and where."""
    document = copy.deepcopy(draw(jobs()))
    *above, last = draw(st.sampled_from(places(document)))
    holder: Any = document
    for part in above:
        holder = holder[part]
    match draw(st.sampled_from(["replace", "replace", "add", "remove"])):
        case "replace":
            holder[last] = draw(values)
        case "add" if isinstance(holder, dict):
            last = draw(texts | st.sampled_from(["max_stages", "Seed"]))
            holder[last] = draw(values)
        case _:
            del holder[last]
    return document, (*above, last)
