"""Collections that answer questions about several target policies."""

from collections.abc import Hashable
from typing import Any

import msgspec
import numpy as np
import pytest

import revar
from revar import Dataset, Difference, Question, Task, VisitStatistics
from revar.collection import Collection
from revar.collection.batches import Dispatcher, add_batch, pack, prepare
from revar.collection.saving import SavedCollection, restore, save
from revar.errors import InputError
from revar.estimators import CertaintyEquivalence
from revar.model.budget import Budget
from revar.model.question import combinations_of
from revar.simulation.plain import PlainRun, play_episode
from revar.simulation.world import World
from revar.strategies import OnPolicy, Strategy, find_strategy
from tests.collection.test_collection import LIVE, same_data, same_statistics, shared_stream, taken
from tests.collection.worlds import play

GRID = revar.find_problem("gridworld")
NAMES = ("plain", "even")
# [S, J, A]: by state, as a policy of a collection gives them.
ROWS = np.stack([GRID.policy, np.full(GRID.policy.shape, 0.25)], axis=1)
EPISODES = 40
KINDS = ("difference", "values", "best")


def fresh(strategy: str | Strategy, kind: str = "difference", **options: Any) -> Collection:
    return Collection(
        strategy,
        horizon=12,
        actions=4,
        names=NAMES,
        combinations=combinations_of(kind, 2),
        **{"budget": EPISODES, "seed": 8, **options},
    )


def rows_of(state: int) -> Any:
    return ROWS[state]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", LIVE)
def test_decisions_are_those_of_a_simulation(strategy: str, kind: str) -> None:
    """All states told in the model's order, the same draws: the same episodes, bit for bit."""
    question = Question.about(ROWS.transpose(1, 0, 2), combinations_of(kind, 2))
    task = Task(question.policy, 12, budget=Budget(EPISODES), question=question)
    twin = PlainRun(find_strategy(strategy), task, VisitStatistics(16, 4), np.random.default_rng(3))
    expected = Dataset.of(play_episode(twin, World.of(GRID.mdp)) for _ in range(EPISODES))
    collection = fresh(strategy, kind)
    for state in range(16):
        collection.states.enter(state, ROWS[state])
    rng = shared_stream(collection, 3)
    for number in range(EPISODES):
        play(collection, GRID.mdp, ROWS, number, rng)
    assert same_data(collection.dataset, expected)
    assert same_statistics(collection.statistics, twin.statistics)


@pytest.mark.parametrize("strategy", LIVE)
@pytest.mark.parametrize("stop", [1, 17])
def test_replaying_stored_episodes_is_resuming(strategy: str, stop: int) -> None:
    whole, resumed = fresh(strategy), fresh(strategy)
    for number in range(EPISODES):
        play(whole, GRID.mdp, ROWS, number)
    resumed.replay(whole.dataset.head(stop), rows_of)
    for number in range(stop, EPISODES):
        play(resumed, GRID.mdp, ROWS, number)
    assert same_data(whole.dataset, resumed.dataset)
    assert whole.estimate() == resumed.estimate()
    one, other = whole.joint_estimate(), resumed.joint_estimate()
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.covariance, other.covariance)


@pytest.mark.parametrize("strategy", LIVE)
def test_choosing_changes_nothing_and_is_what_acting_does(strategy: str) -> None:
    collection = fresh(strategy, "best")
    world, rng = World.of(GRID.mdp), np.random.default_rng(2)
    for number in range(EPISODES):
        episode = collection.start(number)
        state = 0
        while not episode.over:
            before = msgspec.msgpack.encode(save(collection, [episode]))
            stream = episode.rng.bit_generator.state
            decision = episode.choose(state, ROWS[state])
            episode.choose(state, ROWS[state].tolist())
            if collection.states.find(state) is None:
                episode.choose(state, ROWS[state][::-1])
            assert msgspec.msgpack.encode(save(collection, [episode])) == before
            assert episode.rng.bit_generator.state == stream
            action, propensity = episode.act(state, ROWS[state])
            np.testing.assert_equal((action, propensity), decision[:2])
            pair = state * 4 + action
            slot = rng.integers(world.row_start[pair], world.row_start[pair + 1])
            state = int(world.successor[slot])
            episode.observe(rng.normal(), None if state == 16 else state)
        episode.finish()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", LIVE)
def test_a_saved_collection_goes_on_where_it_was(strategy: str, kind: str) -> None:
    """Also in the middle of an episode."""
    whole = fresh(strategy, kind)
    for number in range(15):
        play(whole, GRID.mdp, ROWS, number)
    open_ = whole.start(15)
    action, _ = open_.act(0, ROWS[0])
    record = msgspec.msgpack.encode(save(whole, [open_]))
    other = fresh(strategy, kind)
    (again,) = restore(other, msgspec.msgpack.decode(record, type=SavedCollection))
    assert msgspec.msgpack.encode(save(other, [again])) == record
    assert again.action == action
    for episode in (open_, again):
        episode.observe(0.5, 4)
        episode.finish()
    for number in range(16, EPISODES):
        one, two = play(whole, GRID.mdp, ROWS, number), play(other, GRID.mdp, ROWS, number)
        assert (one.actions, one.rewards) == (two.actions, two.rewards)
    assert same_statistics(whole.statistics, other.statistics)
    assert taken(whole) == taken(other)


# Three arms, of which each policy takes its own.
ARM_NAMES = ("a", "b", "c")
IN_TURN: list[tuple[Strategy, list[int]]] = [
    (OnPolicy(), [0, 1, 2]),
    (OnPolicy(shares=(1, 2, 1)), [0, 1, 1, 2]),
]


def arms(strategy: Strategy) -> Collection:
    return Collection(strategy, horizon=2, actions=3, budget=20, seed=0, names=ARM_NAMES)


def play_arms(collection: Collection, number: int, key: Hashable) -> list[int]:
    """Two steps in states that may be new."""
    episode = collection.start(number)
    for state, following in ((key, "end"), ("end", None)):
        episode.act(state, np.eye(3))
        episode.observe(float(number), following)
    episode.finish()
    return episode.actions


@pytest.mark.parametrize(("strategy", "round_"), IN_TURN, ids=repr)
def test_episodes_follow_each_policy_in_turn(strategy: Strategy, round_: list[int]) -> None:
    """By number, whichever comes first, in known states and in new ones, saved or not."""
    collection = arms(strategy)
    order = [0, 1, 4, 3, 2, *range(5, 12)]
    for number in order[:7]:
        assert (
            play_arms(collection, number, f"start {number % 4}")
            == [round_[number % len(round_)]] * 2
        )
    other = arms(strategy)
    restore(
        other,
        msgspec.msgpack.decode(msgspec.msgpack.encode(save(collection, [])), type=SavedCollection),
    )
    for number in order[7:]:
        for each in (collection, other):
            taken_ = play_arms(each, number, f"start {number}")
            assert taken_ == [round_[number % len(round_)]] * 2


def in_batches(strategy: str, rows: Any, sizes: list[int]) -> Collection:
    """The grid's episodes, played by two workers in turn under the plans of one collection."""
    collection, workers = fresh(strategy), [fresh(strategy), fresh(strategy)]
    dispatcher = Dispatcher(collection)
    first = 0
    for number, count in enumerate(sizes):
        request, shared = dispatcher.request(number, first, count)
        worker = workers[number % 2]
        prepare(worker, shared, request)
        for k in range(first, first + count):
            play(worker, GRID.mdp, rows, k)
        known = len(shared.keys) + len(request.keys)
        add_batch(collection, pack(request, worker.dataset, known=known), lambda key: rows[key])
        first += count
    return collection


@pytest.mark.parametrize("strategy", ["on-policy", "uniform", "ros", "revar"])
def test_batches_of_one_are_the_serial_run(strategy: str) -> None:
    serial = fresh(strategy)
    for number in range(EPISODES):
        play(serial, GRID.mdp, ROWS, number)
    batched = in_batches(strategy, ROWS, [1] * EPISODES)
    assert batched.states.keys == serial.states.keys
    assert same_data(batched.dataset, serial.dataset)


def test_batches_follow_each_policy_in_turn() -> None:
    # Policy 0 goes right and policy 1 down: the actions of an episode tell whose it was.
    rows = np.zeros((16, 2, 4))
    rows[:, 0, 1] = rows[:, 1, 2] = 1.0
    collection = in_batches("on-policy", rows, [1, 2, 3, 1, 5])
    for k, episode in enumerate(collection.dataset):
        assert set(episode.actions.tolist()) == {1 + k % 2}


def test_an_estimate_is_that_of_the_question() -> None:
    collection = fresh("flow")
    for number in range(EPISODES):
        play(collection, GRID.mdp, ROWS, number)
    joint = collection.joint_estimate(confidence=0.9)
    assert joint.confidence == 0.9
    assert collection.estimate(confidence=0.9) == joint.difference(0, 1)
    task = Task.of(GRID.mdp, Difference(GRID.policy, np.full((16, 4), 0.25)))
    # The model's numbers for the states, all of which were met.
    labels = collection.dataset.labels
    assert labels is not None
    numbers = np.array(labels)
    data = collection.dataset
    renumbered = Dataset.of(
        revar.Trajectory.of(
            numbers[e.states],
            e.actions,
            e.rewards,
            last_successor=-1 if e.successors[-1] < 0 else int(numbers[e.successors[-1]]),
        )
        for e in data
    )
    alike = CertaintyEquivalence().joint_estimate(task, renumbered)
    np.testing.assert_allclose(joint.values, alike.values, rtol=1e-10)
    np.testing.assert_allclose(joint.covariance, alike.covariance, rtol=1e-8)


def refusal(collection: Collection, rows: Any) -> str:
    before = msgspec.msgpack.encode(save(collection, []))
    messages = set()
    for ask in ("act", "choose"):
        with pytest.raises(InputError) as caught:
            getattr(collection.start(0), ask)("here", rows)
        messages.add(str(caught.value))
        assert msgspec.msgpack.encode(save(collection, [])) == before
    (message,) = messages
    return message


@pytest.mark.parametrize("rows", [[[0.5, 0.5, 0, 0]], [[1, 0, 0, 0]] * 3, 0.5, None, []], ids=str)
def test_every_policy_needs_a_row(rows: Any) -> None:
    assert refusal(fresh("flow"), rows) == (
        "state 'here' needs a row of probabilities for each of the 2 target policies plain, even"
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [[1, 0, 0, 0], [0.5, 0.5]],
            "target policy 'even' in state 'here' gives probabilities of shape (2,); there are "
            "4 actions",
        ),
        (
            [[1, 0, 0, 0], [0.5, 0.4, 0, 0]],
            "target policy 'even' in state 'here' gives probabilities that sum to 0.9; they must "
            "sum to 1",
        ),
        (
            [[1, 0, 0, np.nan], [1, 0, 0, 0]],
            "target policy 'plain' in state 'here' gives action 3 the probability nan",
        ),
    ],
)
def test_bad_rows_are_refused_by_name(rows: Any, message: str) -> None:
    assert refusal(fresh("flow"), rows) == message


def test_rows_must_not_change() -> None:
    collection = fresh("flow")
    collection.start(5).act("here", [[1, 0, 0, 0], [0.5, 0.5, 0, 0]])
    assert refusal(collection, [[1, 0, 0, 0], [0.25, 0.75, 0, 0]]) == (
        "target policy 'even' gave state 'here' the probabilities [0.5, 0.5, 0.0, 0.0] before, "
        "and [0.25, 0.75, 0.0, 0.0] now"
    )
