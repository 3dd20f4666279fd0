"""Ctrl-C is counted, and only while a run wants that; our log goes into a file."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import pytest

from parcae_cli.local.interrupts import Interrupts
from parcae_cli.local.logs import log_to


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_counted_and_then_mean_what_they_meant(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interrupts() as interrupts:
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        assert interrupts.count == 2
    assert signal.getsignal(number) is before


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.count == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_our_log_goes_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("parcae_operator.loop")
    with log_to(tmp_path / "parcae.log"):
        logger.info("while it runs")
    logger.info("afterwards")
    text = (tmp_path / "parcae.log").read_text()
    assert "INFO parcae_operator.loop: while it runs" in text
    assert "afterwards" not in text


def test_a_log_that_cannot_be_written_disturbs_nobody(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with log_to(Path("/dev/full")):
        logging.getLogger("parcae_cli").warning("no room for this")
    assert capsys.readouterr().err == ""
