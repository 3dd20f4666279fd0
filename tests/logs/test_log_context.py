"""What lines are about, here and in the next program."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parcae_api.log_context import about, all_fields, fields_here, from_header, to_header


def test_the_inner_wins_and_the_outer_comes_back() -> None:
    with about(job="gpt", revision=7):
        with about(revision=8, worker="a/0"):
            assert fields_here() == {"job": "gpt", "revision": 8, "worker": "a/0"}
        with about(revision=None):
            assert fields_here() == {"job": "gpt"}
        assert fields_here() == {"job": "gpt", "revision": 7}
    assert fields_here() == {}


def test_an_error_ends_it_too() -> None:
    with pytest.raises(ValueError, match="odd"), about(revision=8):
        raise ValueError("odd")
    assert fields_here() == {}


def test_it_holds_for_this_thread_alone() -> None:
    found: list[object] = []
    with about(revision=8):
        thread = threading.Thread(target=lambda: found.append(dict(all_fields())))
        thread.start()
        thread.join()
    assert "revision" not in found[0]  # type: ignore[operator]


def test_job_and_revision_go_to_the_next_program() -> None:
    with about(namespace="team", job="gpt", revision=8, worker="a/0"):
        header = to_header()
    assert header == "parcae.namespace=team,parcae.job=gpt,parcae.revision=8"
    assert from_header(header) == {"namespace": "team", "job": "gpt", "revision": 8}


def test_where_nothing_is_known_nothing_goes() -> None:
    with about(worker="a/0"):
        assert to_header() == ""


def test_what_others_put_there_is_left_alone() -> None:
    header = "user=7, parcae.job = gpt ;ttl=3,parcae.revision=9,other"
    assert from_header(header) == {"job": "gpt", "revision": 9}


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        ",,=,;",
        "parcae.revision=-1",
        "parcae.revision=8.5",
        "parcae.revision=1" + "0" * 30,
        "parcae.job=",
        "parcae.job=a%0Ab",
        "parcae.worker=a",
        "job=gpt",
    ],
)
def test_what_has_no_sense_is_left_out(header: str | None) -> None:
    assert from_header(header) == {}


@given(st.text(max_size=300))
def test_whatever_comes_it_stays_small_and_printable(header: str) -> None:
    for name, value in from_header(header).items():
        assert name in ("namespace", "job", "revision")
        assert isinstance(value, int) or (value.isprintable() and len(value) <= 253)


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=60))
def test_any_name_comes_through(name: str) -> None:
    with about(job=name):
        assert to_header().isascii()
        assert from_header(to_header()) == {"job": name}
