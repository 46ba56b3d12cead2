"""Collections whose budget is of steps or cost, with limits: what is spent, kept and replayed."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

import revar
from revar import Limits, VisitStatistics
from revar.collection import Collection, Episode
from revar.collection.batches import BatchRequest, Dispatcher, add_batch, pack, prepare
from revar.collection.saving import SavedCollection, restore, save
from revar.errors import InputError
from revar.estimators import CertaintyEquivalence
from revar.model.budget import Budget
from revar.simulation.world import World, draw_first_state, draw_outcome, draw_reward
from revar.strategies import Plan, find_strategy
from revar.strategies.fixed_plans import OnPolicy
from tests.collection.test_collection import same_data, same_statistics

GRID = revar.find_problem("gridworld")
HORIZON, ACTIONS = GRID.mdp.horizon, GRID.mdp.actions
COSTS = np.random.default_rng(7).exponential(size=(GRID.mdp.states, ACTIONS)) + 0.1
UNSAFE = (np.arange(GRID.mdp.states)[:, None] % 5 == 2) & (np.arange(ACTIONS) > 1)
CASES = {
    "steps": (Budget(700, "steps"), None),
    "cost": (Budget(500.0, "cost"), None),
    "ratio": (Budget(700, "steps"), Limits(max_ratio=2)),
    "sums": (Budget(500.0, "cost"), Limits(min_return="90%", max_sums=[("unsafe", 2.0)])),
    "sums of episodes": (Budget(60), Limits(max_sums=[("unsafe", 2.0), ("again", 3.0)])),
}


def fresh(case: str = "cost", strategy: Any = "flow", **others: Any) -> Collection:
    budget, limits = CASES[case]
    settings = {"budget": budget, "limits": limits, "seed": 8, **others}
    return Collection(strategy, horizon=HORIZON, actions=ACTIONS, **settings)


def policy(state: Any) -> Any:
    return GRID.policy[state]


def amounts_of(names: tuple[str, ...], state: int, action: int, noise: float) -> tuple[float, ...]:
    table = {"cost": COSTS[state, action] * (1.0 + noise)}
    return tuple(table.get(name, float(UNSAFE[state, action])) for name in names)


def play_episode(collection: Collection, number: int) -> Episode:
    """One episode; what steps cost varies."""
    world, episode = World.of(GRID.mdp), collection.start(number)
    rng = np.random.default_rng((3, number))
    state = draw_first_state(world, rng)
    while not episode.over:
        action, _ = episode.act(state, GRID.policy[state])
        slot = draw_outcome(world, state * ACTIONS + action, rng)
        amounts = amounts_of(collection.amounts.names, state, action, rng.random())
        reward = draw_reward(world, state * ACTIONS + action, rng)
        state = int(world.successor[slot])
        episode.observe(reward, None if state == GRID.mdp.states else state, amounts)
    episode.finish()
    return episode


def play_all(collection: Collection) -> Collection:
    while collection.affordable() > 0:
        play_episode(collection, collection.finished)
    return collection


def state_of(collection: Collection) -> bytes:
    return msgspec.msgpack.encode(save(collection, []))


@pytest.mark.parametrize("case", CASES)
def test_a_run_ends_within_an_episode_of_its_budget(case: str) -> None:
    played = play_all(fresh(case))
    budget, data = CASES[case][0], played.dataset
    lengths = np.diff(data.start)
    assert (len(data), played.steps) == (played.finished, data.states.size)
    if budget.unit == "steps":
        assert played.spent == lengths.sum()
        assert budget.amount <= played.spent < budget.amount + lengths[-1]
    elif budget.unit == "cost":
        totals = np.add.reduceat(data.amounts["cost"], data.start[:-1])
        assert played.spent == played.cost == pytest.approx(totals.sum())
        assert budget.amount <= played.spent < budget.amount + totals[-1]
    else:
        assert played.spent == budget.amount == played.finished
    assert tuple(data.amounts) == played.amounts.names


def test_amounts_and_totals_are_those_of_the_episodes() -> None:
    played = play_all(fresh("sums", discount=0.9))
    data = played.dataset
    assert played.amounts.names == ("cost", "unsafe")
    faded = 0.9**data.step_in_episode * data.rewards
    expected = {"return": faded, "steps": np.ones(data.states.size), **data.amounts}
    for name, steps in expected.items():
        totals = np.add.reduceat(steps, data.start[:-1])
        mean, error = played.totals.mean(name)
        assert mean == pytest.approx(totals.mean())
        assert error == pytest.approx(totals.std(ddof=1) / np.sqrt(totals.size))
        assert played.totals.largest[played.totals.names.index(name)] == pytest.approx(totals.max())
    assert data.amounts["unsafe"].tolist() == [
        float(UNSAFE[data.label_of(s), a])
        for s, a in zip(data.states.tolist(), data.actions.tolist(), strict=True)
    ]
    assert all(np.array_equal(data[3].amounts[n], data.part(3, 4).amounts[n]) for n in data.amounts)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stop", [1, 23])
def test_replaying_is_resuming(case: str, stop: int) -> None:
    whole = play_all(fresh(case))
    resumed = fresh(case)
    resumed.replay(whole.dataset.head(stop), policy)
    play_all(resumed)
    assert same_data(whole.dataset, resumed.dataset)
    for name, amounts in whole.dataset.amounts.items():
        np.testing.assert_array_equal(amounts, resumed.dataset.amounts[name])
    assert state_of(whole) == state_of(resumed)
    assert whole.estimate() == resumed.estimate()


@pytest.mark.parametrize("case", CASES)
def test_a_saved_collection_goes_on_as_it_was(case: str) -> None:
    """In the middle of an episode, through bytes."""
    whole = play_all(fresh(case))
    first = fresh(case)
    for number in range(20):
        play_episode(first, number)
    begun = first.start(20)
    begun.act(0, GRID.policy[0])
    begun.observe(0.5, 1, tuple(0.25 for _ in first.amounts.names))
    data = msgspec.msgpack.encode(save(first, [begun]))
    second = fresh(case, budget=None if CASES[case][0].unit != "cost" else CASES[case][0])
    (again,) = restore(second, msgspec.msgpack.decode(data, type=SavedCollection))
    assert msgspec.msgpack.encode(save(second, [again])) == data
    assert second.budget == first.budget
    assert (second.spent, second.affordable(1)) == (first.spent, first.affordable(1))
    assert [tuple(row) for row in again.amounts] == begun.amounts
    for episode in (begun, again):
        episode.act(1, GRID.policy[1])
        episode.observe(1.0, None, tuple(0.5 for _ in first.amounts.names))
        episode.finish()
    assert state_of(first) == state_of(second)
    assert whole.finished > 21  # there was more to come
    play_episode(first, 21), play_episode(second, 21)
    assert state_of(first) == state_of(second)


def request(number: int, first: int, count: int) -> BatchRequest:
    nothing = np.zeros(0, dtype=np.int64)
    return BatchRequest(number, first, count, 0, (), nothing, nothing)


@pytest.mark.parametrize("case", ["steps", "sums"])
def test_batches_carry_amounts(case: str) -> None:
    """Played by a worker under the collection's plan, and added: spent is what was played."""
    main, worker = fresh(case), fresh(case)
    dispatcher = Dispatcher(main)
    played: list[Any] = []
    for number in range(6):
        asked, plan = dispatcher.request(number, main.finished, 4)
        prepare(worker, plan, asked)
        for episode in range(asked.first, asked.first + asked.count):
            play_episode(worker, episode)
        played.append(pack(asked, worker.dataset, len(plan.keys) + len(asked.keys)))
        add_batch(main, played[-1], policy)
    data = main.dataset
    assert len(data) == main.finished == 24
    assert tuple(data.amounts) == main.amounts.names
    assert main.steps == data.states.size
    if case == "sums":
        assert main.cost == pytest.approx(data.amounts["cost"].sum())
        by_hand = fresh(case)
        by_hand.replay(data, policy)
        states = len(main.states)
        np.testing.assert_allclose(main.amounts.means(states), by_hand.amounts.means(states))
        for name in main.totals.names:
            assert main.totals.mean(name) == pytest.approx(by_hand.totals.mean(name))
    # The same batches again give the same collection, to the last bit.
    again = fresh(case)
    for batch in played:
        add_batch(again, batch, policy)
    assert same_data(again.dataset, data)
    assert same_statistics(again.statistics, main.statistics)
    assert (again.cost, again.spent) == (main.cost, main.spent)
    for one, other in zip(save(again, []).totals, save(main, []).totals, strict=True):
        assert one == other


@pytest.mark.parametrize("width", [2, 5, 12])
@pytest.mark.parametrize("case", ["steps", "cost"])
def test_several_at_once_are_never_more_than_an_episode_over(case: str, width: int) -> None:
    """As many are begun as may be, and finished in turn; one costs at most `most`."""
    unit = CASES[case][0].unit
    collection = fresh(case, budget=Budget(90, unit))
    most = 0.0
    while (count := min(width, collection.affordable())) > 0:
        before = collection.spent
        for number in range(count):
            assert number == 0 or collection.affordable(number) > 0
        for _ in range(count):
            begun = collection.spent
            play_episode(collection, collection.finished)
            most = max(most, collection.spent - begun)
        assert before < 90
    # Costs grow by at most a factor of two here, so that the dearest so far tells little less.
    slack = most if case == "steps" else width * most
    assert 90 <= collection.spent < 90 + slack


def test_affordable() -> None:
    def of_steps(amount: int) -> Collection:
        return Collection("on-policy", horizon=10, actions=2, budget=Budget(amount, "steps"))

    assert of_steps(35).affordable() == 3
    assert of_steps(35).affordable(2) == 1
    assert of_steps(35).affordable(3) == 0
    assert of_steps(5).affordable() == 1
    assert of_steps(5).affordable(1) == 0
    collection = of_steps(12)
    episode = collection.start(0)
    for _ in range(8):
        episode.act("a", [0.5, 0.5])
        episode.observe(0.0, "a")
    assert collection.spent == 8  # open episodes count
    assert (collection.affordable(), collection.affordable(1)) == (1, 0)
    endless = Collection("on-policy", horizon=10, actions=2)
    assert endless.affordable(1000) > 10**9
    counted = Collection("on-policy", horizon=10, actions=2, budget=7)
    assert (counted.affordable(), counted.affordable(3), counted.affordable(9)) == (7, 4, 0)
    paid = Collection("on-policy", horizon=10, actions=2, budget=Budget(10.0, "cost"))
    assert (paid.affordable(), paid.affordable(1)) == (1, 0)  # what one costs is not known
    for number, cost in enumerate((0.0, 2.0, 1.0)):
        episode = paid.start(number)
        episode.act("a", [0.5, 0.5])
        episode.observe(0.0, None, (cost,))
        episode.finish()
    assert (paid.spent, paid.affordable(), paid.affordable(1)) == (3.0, 3, 2)


@pytest.mark.parametrize("case", ["steps", "cost"])
def test_prior_episodes_spend_nothing(case: str) -> None:
    earlier = play_all(fresh(case, strategy="on-policy"))
    collection = fresh(case)
    collection.learn_from(earlier.dataset, policy)
    assert (collection.spent, collection.finished) == (0.0, 0)
    budget = collection.task.budget
    assert budget is not None
    # The task's budget is of all that the statistics hold.
    assert budget.unit == CASES[case][0].unit
    assert budget.amount == pytest.approx(CASES[case][0].amount + earlier.spent)
    assert collection.affordable() == fresh(case).affordable()
    play_all(collection)
    assert CASES[case][0].amount <= collection.spent
    last = collection.task.budget
    assert last is not None
    assert last.amount == pytest.approx(CASES[case][0].amount + earlier.spent, rel=0.05)


def test_prior_episodes_without_amounts_teach_all_the_same() -> None:
    earlier = Collection("on-policy", horizon=HORIZON, actions=ACTIONS, seed=1)
    for number in range(10):
        play_episode(earlier, number)
    collection = fresh("sums")
    collection.learn_from(earlier.dataset, policy)
    by_table = CertaintyEquivalence().estimate(earlier.task, earlier.statistics)
    assert collection.estimate() == by_table
    play_episode(collection, 0)
    assert collection.spent > 0.0


@pytest.mark.parametrize("strategy", ["flow", "on-policy", "revar"])
def test_decisions_are_those_of_a_simulation(strategy: str) -> None:
    """With a budget of steps, and the states told beforehand: one rule for both."""
    from revar.model.task import Task
    from revar.simulation.plain import PlainRun
    from revar.simulation.plain import play_episode as play_plainly

    limits = None if strategy == "revar" else Limits(max_ratio=2)
    budget = Budget(400, "steps")
    task = Task(GRID.policy, HORIZON, GRID.mdp.discount, budget=budget, limits=limits)  # type: ignore[arg-type]
    twin = PlainRun(
        *(find_strategy(strategy), task, VisitStatistics(GRID.mdp.states, ACTIONS)),
        np.random.default_rng(3),
    )
    world = World.of(GRID.mdp)
    collection = Collection(
        strategy, horizon=HORIZON, actions=ACTIONS, discount=GRID.mdp.discount, budget=budget,
        limits=limits,
    )  # fmt: skip
    for state in range(GRID.mdp.states):
        collection.states.enter(state, GRID.policy[state])
    rng = np.random.default_rng(3)
    while collection.affordable() > 0:
        expected = play_plainly(twin, world)
        episode = collection.start(collection.finished)
        episode.rng = rng
        state = draw_first_state(world, rng)
        while not episode.over:
            action, _ = episode.act(state, GRID.policy[state])
            slot = draw_outcome(world, state * ACTIONS + action, rng)
            reward = draw_reward(world, state * ACTIONS + action, rng)
            state = int(world.successor[slot])
            episode.observe(reward, None if state == GRID.mdp.states else state)
        episode.finish()
        assert episode.actions == expected.actions.tolist()


def test_forbidden_actions_are_refused_before_anything_is_taken() -> None:
    collection = fresh("steps", limits=Limits(forbidden=[("b", 1)]), names=("old", "new"))
    episode = collection.start(0)
    episode.act("a", [[0.5, 0.5, 0, 0], [0, 1, 0, 0]])
    episode.observe(0.0, "b")
    before = state_of(collection)
    for method in (episode.act, episode.choose):
        with pytest.raises(
            InputError,
            match=r"limits forbid action 1 in state 'b', which target policy 'new' takes there "
            r"with probability 0.25; the estimate cannot do without it",
        ):
            method("b", [[1, 0, 0, 0], [0.5, 0.25, 0.25, 0]])
    assert state_of(collection) == before
    episode.act("b", [[1, 0, 0, 0], [0.5, 0, 0.5, 0]])


def test_an_array_forbids_by_number() -> None:
    table = np.zeros((GRID.mdp.states, ACTIONS), dtype=bool)
    table[0, int(GRID.policy[0].argmax())] = True
    collection = fresh("steps", limits=Limits(forbidden=table))
    with pytest.raises(InputError, match=r"limits forbid action . in state 0"):
        collection.start(0).act(0, GRID.policy[0])
    with pytest.raises(InputError, match=r"array of .* has no row for state 'x'"):
        collection.start(0).act("x", GRID.policy[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: fresh("ratio", strategy="revar"),
            "strategy 'revar' knows no limits; those that do are flow",
        ),
        (lambda: fresh(limits=Limits(forbidden=[9])), "forbidden names action 9; there are 4"),
        (lambda: fresh(limits="no"), "limits is 'no'; it must be a revar.Limits, or None"),
        (lambda: fresh(budget=0), "episodes is 0; it must be a whole number of at least 1"),
        (lambda: fresh(strategy="revar"), None),
    ],
)
def test_conditions_that_do_not_fit(make: Callable[[], Collection], message: str | None) -> None:
    if message is None:  # revar's bound needs the number of steps, and says so at the first plan
        with pytest.raises(InputError, match="revar needs to know the number of episodes, or of"):
            play_episode(make(), 0)
        return
    with pytest.raises(InputError, match=message):
        make()


def test_a_step_needs_its_amounts() -> None:
    collection = fresh("sums")
    episode = collection.start(0)
    episode.act(0, GRID.policy[0])
    before = state_of(collection)
    refused: list[tuple[Any, str]] = [
        ((), "a step needs the amounts cost, unsafe; it has 0"),
        ((1.0, 2.0, 3.0), "a step needs the amounts cost, unsafe; it has 3"),
        ((-1.0, 0.0), "the cost of action . in state 0 is -1; it must not be negative"),
        ((1.0, float("nan")), "the unsafe of action . in state 0 is nan; it must be finite"),
        ((1.0, "x"), "the unsafe of action . in state 0 is 'x', which is no number"),
    ]
    for amounts, message in refused:
        with pytest.raises(InputError, match=message):
            episode.observe(1.0, None, amounts)
        assert state_of(collection) == before
    episode.observe(1.0, None, (2, True))
    assert episode.amounts == [(2.0, 1.0)]
    assert collection.spent == 2.0
    free = Collection("on-policy", horizon=2, actions=2)
    episode = free.start(0)
    episode.act("a", [0.5, 0.5])
    with pytest.raises(InputError, match="a step needs the amounts of nothing; it has 1"):
        episode.observe(1.0, None, (1.0,))


def test_a_state_alone_knows_no_costs() -> None:
    """What a strategy is told of a new state does not depend on when it is met."""
    told: list[Any] = []

    class Listening(OnPolicy):
        def plan(self, task: Any, statistics: Any) -> Plan:
            if task.states == 1:
                told.append((task.cost.tolist(), task.budget, task.limits.sums[0].amounts.tolist()))
            return super().plan(task, statistics)

    collection = fresh("sums", strategy=Listening())
    for number in range(5):
        play_episode(collection, number)
        row = np.array([1.0, number, 0.0, 0.0])
        collection.scores_without_data(row[None] / row.sum())
    assert len(told) >= 5
    assert all(each == told[0] for each in told)
