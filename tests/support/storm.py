"""A storm: workers die, sleep and lose connections anywhere, and plans follow upon plans.

Everything is drawn from a seed; when what happens, of course, also depends on the machine.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from crew import Crew, await_true
from faults import Faults
from proof import settle

from parcae_agent.probe import POINTS
from parcae_api.plan import PlanReason

GRIDS = [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (1, 4), (2, 2), (4, 1)]
PLAN_CHANGE = POINTS[POINTS.index("form") :]
TORN = RuntimeError("Connection closed by peer")


@dataclass
class Storm:
    """Plays the operator of a crew through a storm."""

    crew: Crew
    seed: int
    rounds: int = 12
    max_steps: int = 60
    waits_s: list[float] = field(default_factory=list)
    """How long it took, each time, until a plan's epoch ran or something had happened to it."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.started = 0
        self.trouble = False
        self.training: set[str] = set()
        """Members of the plan before the newest: it may take their vote to leave that one."""

    def run(self) -> int:
        """Rage, then calm down, compare everything; the steps committed by then."""
        self._start(5)
        for _ in range(self.rounds):
            self._round()
        for name in self._asleep():
            self.crew.wake(name)
        self._start(4, calm=True)
        calm = list(self.crew.alive)[-4:]
        donors = [name for name in self.crew.alive if name not in calm]
        # The rest of the script may still strike the donors: until it has, and they are left out.
        while not self._publish(2, 2, calm, donors, PlanReason.LOSS):
            donors = [name for name in donors if name in self._awake()]
        for name in self._asleep():
            self.crew.wake(name)
        return settle(self.crew)

    def _round(self) -> None:
        chance, crew = self.chance, self.crew
        while len(self._awake()) < 4:
            self._start(1)
        if self._asleep() and chance.random() < 0.5:
            crew.wake(chance.choice(self._asleep()))
        if chance.random() < 0.15:
            crew.kill(chance.choice(self._awake()))
            self.trouble = True
        awake = self._awake()
        grids = [grid for grid in GRIDS if grid[0] * grid[1] <= len(awake)]
        data, pipeline = chance.choice(grids)
        members = chance.sample(awake, data * pipeline)
        others = [name for name in awake if name not in members]
        donors = others if chance.random() < 0.8 else []
        slept = not self.training <= set(awake)
        sudden = self.trouble or slept or chance.random() < 0.2
        reason = PlanReason.LOSS if sudden else PlanReason.NOTICE
        self.trouble = not self._publish(data, pipeline, members, donors, reason)

    def _publish(
        self, data: int, pipeline: int, members: list[str], donors: list[str], reason: PlanReason
    ) -> bool:
        """Publish a plan; whether it came to run a step before something happened to it."""
        crew = self.crew
        revision = crew.plan(data, pipeline, members, donors=donors, reason=reason)
        started = time.monotonic()
        first = crew.hands[members[0]]

        def runs() -> bool:
            return first.state.revision == revision and crew.reported(revision) > first_step

        involved = {*members, *donors}
        sleepers = self.training if reason is PlanReason.NOTICE else set()
        self.training = involved

        def struck() -> bool:
            awake = self._awake()
            return not (involved | sleepers) <= set(awake) or any(
                crew.hands[name].state.broken_revision >= revision for name in involved
            )

        await_true(lambda: crew.reported(revision) >= 0 or struck(), f"{revision} runs; {crew}")
        first_step = crew.reported(revision)
        self.waits_s.append(time.monotonic() - started)
        if self.chance.random() < 0.7 and first_step >= 0:
            await_true(lambda: runs() or struck(), f"{revision} trains; {crew}")
        return not struck()

    def _start(self, count: int, *, calm: bool = False) -> None:
        names = [f"w{self.started + i}" for i in range(count)]
        self.started += count
        self.crew.start(*names, probes={} if calm else {n: self._script() for n in names})

    def _script(self) -> Faults:
        chance, faults = self.chance, Faults()
        kind = chance.choice(["none", "kill", "kill", "stop", "tear"])
        point = chance.choice(POINTS)
        when = {"at": point, "nth": chance.randint(2, 5)}
        if point not in PLAN_CHANGE:
            when = {"at": point, "step": chance.randint(1, self.max_steps)}
        match kind:
            case "kill":
                return faults.kill(**when)
            case "stop":
                return faults.stop(**when)
            case "tear":
                return faults.fail_with(TORN, **when)
        return faults

    def _awake(self) -> list[str]:
        return [name for name in self.crew.alive if not self.crew.hands[name].is_stopped()]

    def _asleep(self) -> list[str]:
        return [name for name in self.crew.alive if self.crew.hands[name].is_stopped()]
