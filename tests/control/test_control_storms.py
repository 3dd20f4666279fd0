"""Anything may happen in any order: plans stay valid, state is never given up while a copy lives,
and when the storm is over training goes on or pauses for a reason.
"""

from __future__ import annotations

from control_world import Hand, World
from hypothesis import given, settings
from hypothesis import strategies as st

from parcae_api.plan import Plan, PlanReason
from parcae_operator.controller import BROKEN_GRACE_LIMIT_S

EVENTS = ["join", "notice", "kill", "leave", "obey", "half", "train", "break", "lease", "wait"]

storms = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, 99), st.booleans()), min_size=1, max_size=40
)
limits = st.tuples(
    st.integers(1, 3),  # instances.min
    st.sampled_from([(1, 512), (1, 1), (2, 3), (2, 6), (3, 3)]),
    st.integers(3, 6),  # layers
)


class Storm:
    """Applies random events to a world whose controller is always listened to."""

    def __init__(self, least: int, stages: tuple[int, int], layers: int, present: int) -> None:
        self.world = World(least=least, stages=stages, layers=layers, most=6)
        self.world.ready(*(f"agent{n}" for n in range(present)))
        self.count = present
        self.listen()

    def listen(self) -> Plan | None:
        """Publish what the controller wants, if it is valid."""
        plan = self.world.next_plan()
        if plan is None:
            return None
        self.check(plan)
        self.world.publish()
        return plan

    def check(self, plan: Plan) -> None:
        world = self.world
        assert plan.revision == (world.plan.revision if world.plan else 0) + 1
        living = {hand.id: hand for hand in world.hands.values() if hand.lives}
        assert set(plan.members) <= living.keys()
        assert not any(living[worker].notice for worker in plan.workers)
        staying = sum(hand.notice is None for hand in living.values())
        if plan.layout is not None:
            assert staying >= world.least
            assert world.stages[0] <= plan.layout.configuration.pipeline <= world.stages[1]
            self.check_holders(plan, list(living.values()))

    def check_holders(self, plan: Plan, living: list[Hand]) -> None:
        """No layer that lives is left out."""

        def layers(hands: list[Hand]) -> set[int]:
            return {k for hand in hands if hand.held for k in hand.held.layers}

        valid = self.world.valid_holders(living)
        whole = layers(valid) == set(range(self.world.layers))
        members = [hand for hand in valid if hand.id in plan.members]
        assert not whole or layers(members) == layers(valid), plan

    def happen(self, event: str, number: int, listens: bool) -> None:
        world, names = self.world, sorted(self.world.hands)
        name = names[number % len(names)] if names else ""
        hand = world.hands.get(name)
        match event:
            case "join":
                world.ready(f"agent{self.count}")
                self.count += 1
            case "notice" if name:
                world.notice(name)
            case "kill" if name:
                world.lose(name)
            case "leave" if world.plan is not None:
                world.quit()
            case "obey" if world.plan is not None and not self.trains():
                world.obey()
            case "half" if world.plan is not None:
                world.obey_half([n for bit, n in enumerate(names) if number >> bit & 1])
            case "train":
                world.train(1 + number % 5)
            case "break" if hand is not None and world.plan is not None and hand.lives:
                if hand.id in world.plan.members:
                    world.break_(name)
            case "lease" if hand is not None:
                hand.on_board = not hand.on_board
            case "wait":
                world.wait(number / 10)
        if listens:
            self.listen()

    def trains(self) -> bool:
        """Whether all of the current epoch are in it."""
        world = self.world
        hands = [world._hand(worker) for worker in world.plan.workers] if world.plan else []
        return world.is_formed and all(h is not None and h.in_epoch for h in hands)

    def calm_down(self) -> None:
        """Nothing happens any more, but for what workers and controller do."""
        for hand in self.world.hands.values():
            hand.on_board = True
        quiet = 0
        for _ in range(200):
            if self.world.plan is not None and not self.trains():
                self.world.obey()
            self.world.quit()
            quiet = 0 if self.listen() else quiet + 1
            if quiet == 3:
                return
            self.world.wait(BROKEN_GRACE_LIMIT_S)
        raise AssertionError(f"never calm: {self.world.plan}")


@settings(max_examples=400, deadline=None)
@given(limits, st.integers(0, 5), storms)
def test_after_every_storm_training_goes_on_or_pauses_for_a_reason(
    limits: tuple[int, tuple[int, int], int], present: int, events: list[tuple[str, int, bool]]
) -> None:
    storm = Storm(*limits, present)
    for event in events:
        storm.happen(*event)
    storm.calm_down()
    world = storm.world
    staying = sum(hand.lives and hand.notice is None for hand in world.hands.values())
    if staying >= max(world.least, world.stages[0]):
        assert storm.trains()
        assert world.status()[0] == "Training"
    else:
        assert world.plan is None or world.plan.layout is None
        assert world.status()[0] in ("Paused", "WaitingForInstances")
        assert "instances.min" in world.status()[1] or "minStages" in world.status()[1]


@settings(max_examples=200, deadline=None)
@given(limits, st.integers(1, 5), storms)
def test_after_every_storm_a_job_can_be_ended(
    limits: tuple[int, tuple[int, int], int], present: int, events: list[tuple[str, int, bool]]
) -> None:
    storm = Storm(*limits, present)
    for event in events:
        storm.happen(*event)
    storm.world.finish = "interrupted"
    for _ in range(50):
        if storm.world.end() is not None:
            break
        storm.listen()
        if storm.world.plan is not None and not storm.trains():
            storm.world.obey()
        storm.world.quit().train(1).wait(BROKEN_GRACE_LIMIT_S)
    end = storm.world.end()
    assert end is not None, storm.world.plan
    plan = storm.world.plan
    assert plan is None or plan.reason in (PlanReason.FINISH, PlanReason.INITIAL)
