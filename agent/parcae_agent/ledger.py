"""The sample ledger: what every worker itself recorded, put together and checked.

A worker appends a line *before* it hands its gradients into a reduction, naming the
micro-batches whose backward it ran, and another when it commits. What was lost or counted
twice therefore shows, whatever the step counter says. The lines survive a kill: each is one
``write`` to a file opened for appending.

The check: epochs that resumed from one another make a line; in the epoch of that line in which a
step was committed, every layer must have taken in every micro-batch once.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from parcae_api.errors import InputError, TrainingFailed
from parcae_api.model import Contract


class JobLine(Contract):
    """Sizes that turn micro-batches into samples."""

    kind: Literal["job"] = "job"
    num_layers: int
    num_micro_batches: int
    micro_batch_samples: int


class EpochLine(Contract):
    """The worker took its cell in an epoch."""

    kind: Literal["epoch"] = "epoch"
    revision: int
    resume: int
    replica: int
    stage: int
    first_layer: int
    last_layer: int
    configuration: str
    at_unix_s: float


class ReduceLine(Contract):
    """Gradients of these micro-batches go into the reduction of a step."""

    kind: Literal["reduce"] = "reduce"
    revision: int
    step: int
    micro_batches: tuple[int, ...]


class CommitLine(Contract):
    """The worker applied a step. No loss where it learnt of the commit while an epoch formed."""

    kind: Literal["commit"] = "commit"
    revision: int
    step: int
    at_unix_s: float
    loss: float | None = None


Line = Annotated[JobLine | EpochLine | ReduceLine | CommitLine, Field(discriminator="kind")]
_LINE: TypeAdapter[Line] = TypeAdapter(Line)


class Journal:
    """A worker's own part of the ledger.

    Raises:
        TrainingFailed: the folder cannot be written.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._path = folder / f"{worker.replace('/', '.')}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._fd = os.open(self._path, flags, 0o644)
        except OSError as error:
            raise self._failure(error) from error

    def write(self, line: JobLine | EpochLine | ReduceLine | CommitLine) -> None:
        """Append one line.

        Raises:
            TrainingFailed: the disk is full or gone. A part of the line may be there.
        """
        raw = line.to_json() + b"\n"
        try:
            while raw:
                raw = raw[os.write(self._fd, raw) :]
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> TrainingFailed:
        # Without its ledger nobody could say what a run has computed: it must not go on.
        return TrainingFailed(
            f"the ledger {self._path} cannot be written: {error.strerror}; free space or name "
            "another folder"
        )

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


@dataclass(frozen=True)
class CommittedStep:
    """A step of the true history."""

    step: int
    revision: int
    configuration: str
    at_unix_s: float
    loss: float | None


@dataclass
class Ledger:
    """The checked whole."""

    steps: list[CommittedStep]
    samples_committed: int
    samples_lost: int
    samples_repeated: int
    problems: list[str] = field(default_factory=list)
    """One sentence per step that is wrong, at most the first hundred."""

    @property
    def is_sound(self) -> bool:
        """No sample lost, none repeated."""
        return not self.samples_lost and not self.samples_repeated


def read_ledger(folder: Path) -> Ledger:
    """Read all workers' journals of a run and check them.

    Raises:
        InputError: the folder holds no journal, or a line is damaged.
    """
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise InputError(f"{folder}: holds no ledger; name the folder of a run (its --out)")
    return check([list(_lines(path)) for path in files])


def _lines(path: Path) -> Iterator[Line]:
    raw_lines = path.read_bytes().split(b"\n")
    for number, raw in enumerate(raw_lines, start=1):
        if not raw:
            continue
        try:
            yield _LINE.validate_json(raw)
        except ValidationError as error:
            if number == len(raw_lines):
                return  # the last line of a worker on a full disk may be cut short
            raise InputError(f"{path}: line {number} is damaged: {raw[:80]!r}") from error


@dataclass
class _Votes:
    """Everything recorded of one (revision, step)."""

    taken: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """Layer → micro-batch → how often."""
    commits: list[CommitLine] = field(default_factory=list)


def check(journals: Iterable[list[Line]]) -> Ledger:
    """Put the journals of all workers together and check every committed step."""
    job: JobLine | None = None
    resumes: dict[int, int] = {}
    configurations: dict[int, str] = {}
    votes: dict[tuple[int, int], _Votes] = defaultdict(_Votes)
    for journal in journals:
        epoch: EpochLine | None = None
        for line in journal:
            match line:
                case JobLine():
                    job = line
                case EpochLine():
                    epoch = line
                    resumes[line.revision] = line.resume
                    configurations[line.revision] = line.configuration
                case ReduceLine() if epoch is not None:
                    counts = votes[line.revision, line.step].taken
                    for layer in range(epoch.first_layer, epoch.last_layer):
                        counts[layer].update(line.micro_batches)
                case CommitLine():
                    votes[line.revision, line.step].commits.append(line)
    if job is None:
        raise InputError("the ledger says nothing of the job's sizes; no worker ever started")
    winners = _true_history(votes, resumes)
    return _count(job, votes, winners, configurations)


def _true_history(
    votes: dict[tuple[int, int], _Votes], resumes: dict[int, int]
) -> dict[int, list[int]]:
    """Step → the revisions in which it was committed, along the line that training took.

    An epoch that resumes before the line's end drops what lies behind. One that resumes beyond it
    read a checkpoint from an earlier line, which was complete only after that line was left.
    """
    committed: dict[int, list[int]] = defaultdict(list)
    for (revision, step), vote in votes.items():
        if vote.commits:
            committed[revision].append(step)
    line: dict[int, list[int]] = {}
    left: list[dict[int, list[int]]] = []
    for revision in sorted({*resumes, *committed}):
        resume = resumes.get(revision, max(line, default=-1) + 1)
        if any(step >= resume for step in line):
            left.append(line)
        elif resume > max(line, default=-1) + 1:
            line = next((old for old in reversed(left) if resume - 1 in old), line)
        line = {step: list(revisions) for step, revisions in line.items() if step < resume}
        for step in committed[revision]:
            line.setdefault(step, []).append(revision)
    return line


def _count(
    job: JobLine,
    votes: dict[tuple[int, int], _Votes],
    winners: dict[int, list[int]],
    configurations: dict[int, str],
) -> Ledger:
    total = max(winners, default=-1) + 1
    ledger = Ledger([], 0, 0, 0)
    for step in range(total):
        lost, repeated = _step_errors(job, [votes[r, step] for r in winners.get(step, [])])
        ledger.samples_lost += lost * job.micro_batch_samples
        ledger.samples_repeated += repeated * job.micro_batch_samples
        ledger.samples_committed += (job.num_micro_batches - lost) * job.micro_batch_samples
        if (lost or repeated) and len(ledger.problems) < 100:
            ledger.problems.append(
                f"step {step}: {lost} micro-batches missing, {repeated} counted more than once"
            )
        if step in winners:
            revision = max(winners[step])
            commits = votes[revision, step].commits
            ledger.steps.append(
                CommittedStep(
                    step,
                    revision,
                    configurations.get(revision, ""),
                    min(c.at_unix_s for c in commits),
                    next((c.loss for c in commits if c.loss is not None), None),
                )
            )
    return ledger


def _step_errors(job: JobLine, committed: list[_Votes]) -> tuple[int, int]:
    """(micro-batches missing, micro-batches counted twice), the worst over layers."""
    lost = repeated = 0
    for layer in range(job.num_layers):
        counts: Counter[int] = Counter()
        for vote in committed:
            counts.update(vote.taken.get(layer, Counter()))
        lost = max(lost, sum(1 for m in range(job.num_micro_batches) if not counts[m]))
        repeated = max(repeated, sum(n - 1 for n in counts.values() if n > 1))
    return lost, repeated
