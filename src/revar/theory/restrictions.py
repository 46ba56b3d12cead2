"""What costs and limits mean on a model: arrays for the solver, checked against the model."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import BoolArray, FloatArray, Layers
from revar.model.budget import check_visit_costs
from revar.model.limits import Limits, check_limits
from revar.model.mdp import TabularMDP
from revar.model.question import Question
from revar.model.structure import reachable_layers
from revar.model.validation import pair_name
from revar.theory.caps import keep_to_caps, limited_reply
from revar.theory.flow_steps import flow_of
from revar.theory.proportions import fallback_shares
from revar.theory.values import policy_value

# Limits on sums are kept to this share of the limit, or a smaller one of what sums can differ by:
# rounding, and room for a solver.
ROUNDING = 1e-9
LEAST_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Flow:
    """A behavior's flow, and what counts of it."""

    flow: FloatArray  # [L, S, A]
    visits: FloatArray  # [S, A]
    spent: float  # the cost of an episode
    sums: FloatArray  # [M]


class Restrictions:
    """What an episode costs, e = f + c.X, and what it must keep: shares <= caps, sums <= most.

    Sum i is sum_t discounts[i]^t amounts[i].x_t; a discount is 1 or the model's.
    """

    def __init__(
        self, mdp: TabularMDP, asked: Question, cost: Any = None, given: Limits | None = None
    ) -> None:
        limits = check_limits(given)
        shape = (mdp.states, mdp.actions)
        self.mdp = mdp
        self.episode_cost = 1.0 if cost is None else 0.0
        self.visit_cost = np.zeros(shape) if cost is None else check_visit_costs(cost, *shape)
        self.policy = fallback_shares(asked.policy)
        self.caps = limits.caps(self.policy)
        self.layers = self._reachable()
        self.names = [limit.name for limit in limits.sums]
        self.amounts = np.array([limit.table(*shape) for limit in limits.sums])  # [M, S, A]
        self.amounts = self.amounts.reshape(-1, *shape)
        self.most = np.array([limit.most for limit in limits.sums])  # [M]
        self.discounted = np.zeros(len(self.most), dtype=bool)  # [M]
        value = float(np.mean([policy_value(mdp, policy) for policy in asked.policies]))
        floor = limits.least_return(value)
        if floor is not None:
            self.names.append("min_return")
            self.amounts = np.concatenate([self.amounts, -mdp.arrays.reward_mean[None]])
            self.most = np.append(self.most, -floor)
            self.discounted = np.append(self.discounted, True)
        self.nothing = np.zeros(shape)
        self.units = np.ones(len(self.most))  # [M] what sums are measured in
        self.least_cost = 1.0 if cost is None else self._least_cost()  # of an episode
        self._check_sums(limits.min_return)

    @property
    def rounding(self) -> FloatArray:
        """By how much each sum may exceed its limit, [M]."""
        return np.asarray(np.maximum(ROUNDING * np.abs(self.most), LEAST_ROUNDING * self.units))

    def behavior_within_caps(self, shares: FloatArray) -> FloatArray:
        """Shares [S, A] at every step, scaled in each state to keep to the caps."""
        row = shares[None].copy()
        for s, total in enumerate(self.caps.sum(axis=1)):
            if total >= 1.0 - ROUNDING:
                keep_to_caps(row, self.caps, 0, s)
            elif total > 0.0:  # never entered
                row[0, s] = self.caps[s] / total
        return np.repeat(row, self.mdp.horizon, axis=0)

    def reply(self, prices: FloatArray, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """The behavior whose visits earn most at those prices minus multipliers [M] of sums."""
        mdp = self.mdp
        worth, later = self.own_worth(multipliers)
        behavior = np.zeros((mdp.horizon, mdp.states, mdp.actions))
        earned = limited_reply(
            *(mdp.arrays.outcomes, mdp.arrays.initial, self.layers, self.caps, prices + worth),
            *(later, mdp.discount, behavior, np.zeros((4, mdp.states + 1))),
            np.zeros((2, mdp.actions)),
        )
        return behavior, earned

    def own_worth(self, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What visits are worth by the limits on sums, [S, A]: at any step, and discounted."""
        parts = -multipliers[:, None, None] * self.amounts
        return parts[~self.discounted].sum(axis=0), parts[self.discounted].sum(axis=0)

    def flow_of(self, behavior: FloatArray) -> Flow:
        """The flow of a behavior [L, S, A], its cost and its sums."""
        mdp = self.mdp
        flow, visits = np.zeros(behavior.shape), np.zeros(self.caps.shape)
        flow_of(
            *(mdp.arrays.outcomes, mdp.arrays.initial, self.layers, behavior, flow, visits),
            np.zeros((2, mdp.states + 1)),
        )
        return self.account(flow, visits)

    def account(self, flow: FloatArray, visits: FloatArray) -> Flow:
        """Cost and sums of a flow."""
        spent = self.episode_cost + float(np.sum(self.visit_cost * visits))
        sums = np.einsum("isa,sa->i", self.amounts, visits)
        if self.discounted.any():
            now = self.mdp.discount ** np.arange(self.mdp.horizon)
            later = np.tensordot(now, flow, axes=1)  # [S, A]
            sums = np.where(self.discounted, np.einsum("isa,sa->i", self.amounts, later), sums)
        return Flow(flow, visits, spent, sums)

    def require_visits(self, needed: BoolArray) -> None:
        """Refuse limits under which a `needed` [S, A] pair is never visited."""
        entered = np.zeros(self.mdp.states, dtype=bool)
        entered[self.layers.states] = True
        missing = needed & ~((self.caps > 0) & entered[:, None])
        if missing.any():
            pair = pair_name(int(np.argmax(missing)), self.mdp.actions)
            raise InputError(
                f"limits keep collection from ever visiting {pair}, and the estimate cannot do "
                f"without it"
            )

    def _reachable(self) -> Layers:
        mdp = self.mdp
        layers = reachable_layers(
            mdp.arrays.outcomes, mdp.arrays.initial, self.caps > 0, mdp.horizon
        )
        entered = np.unique(layers.states)
        short = self.caps[entered].sum(axis=1) < 1.0 - ROUNDING
        if short.any():
            state = int(entered[np.argmax(short)])
            share = self.caps[state].sum()
            left = f"actions for at most {share:.3g} of its visits" if share else "no action"
            raise InputError(
                f"limits leave {left} in state {state}, which can be entered; forbid less, or "
                f"forbid what leads there"
            )
        return layers

    def _least_cost(self) -> float:
        """What the cheapest episode costs; refuse a cost if that is nothing."""
        none = np.zeros(len(self.most))
        _, earned = self.reply(-self.visit_cost, none)
        if earned < 0.0:
            return -earned
        _, most = self.reply(self.visit_cost, none)
        what = "an episode may cost nothing" if most > 0.0 else "no visit costs anything"
        raise InputError(
            f"with this cost {what}, so that a budget would pay for any number of episodes; give "
            f"every first step a cost"
        )

    def _check_sums(self, floor: float | str | None) -> None:
        """Refuse the first limit on a sum that no behavior keeps; find the unit of each."""
        for number, name in enumerate(self.names):
            alone = np.eye(len(self.names))[number]
            least = -self.reply(self.nothing, alone)[1]
            largest = self.reply(self.nothing, -alone)[1]
            most = float(self.most[number])
            self.units[number] = max(largest - least, abs(most)) or 1.0
            if least > most + 0.5 * self.rounding[number]:
                if name == "min_return":
                    given = f'"{floor}", which is {-most:.6g}' if isinstance(floor, str) else floor
                    rule = f"no allowed behavior returns more than {-least:.6g}"
                    raise InputError(f"min_return is {given}; {rule}")
                raise InputError(
                    f"{name} is at most {most:.6g}; no allowed behavior has less than {least:.6g}"
                )
