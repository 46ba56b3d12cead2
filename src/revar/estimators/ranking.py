"""Which of several policies is the best, and whether the data can tell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from revar.estimators.estimator import Estimate, JointEstimate, normal_quantile, together
from revar.model.arrays import FloatArray
from revar.model.records import in_a_line

# Nothing is decided while a larger share of a policy's episodes rests on no data.
MOST_UNVISITED = 0.01
# Nor while most steps of a policy take what always did the same, in few visits.
MOST_SILENT = 0.5
# Nor before so many episodes where nothing varied: what never did may be rare.
LEAST_WITHOUT_NOISE = 1000


@dataclass(frozen=True)
class Verdict:
    """Whom the leader beats, whom it equals for all practical purposes, and who is still open."""

    leader: str
    beaten: tuple[str, ...]
    equal: tuple[str, ...]
    undecided: tuple[str, ...]
    without_data: tuple[str, ...]  # policies too much of which rests on no data
    confidence: float
    indifference: float | None

    @property
    def decided(self) -> bool:
        """Whether every question about the leader is answered."""
        return not self.undecided

    def __str__(self) -> str:
        if self.without_data:
            return f"{self.leader} leads, but too little is known of {_listed(self.without_data)}"
        if self.undecided:
            return f"{self.leader} leads, but may not be better than {_listed(self.undecided)}"
        level = f"({100 * self.confidence:.4g}% confidence)"
        if not self.equal:
            return f"{self.leader} is the best {level}"
        tie = f"no difference larger than {self.indifference:g}"
        if not self.beaten and len(self.equal) == 1:
            return f"{tie} {level}"
        tie = f"no difference to {self.leader} larger than {self.indifference:g}"
        if not self.beaten:
            return f"{tie} {level}"
        return f"{_listed((self.leader, *self.equal))} are the best: {tie} {level}"


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """The values of policies with names, and the differences of the leader to the others.

    A wrong policy is named the best only if one of the differences between the true best and the
    others misses its interval. There are J - 1 of these; `quantile_of_differences` makes their
    intervals hold together.
    """

    names: tuple[str, ...]
    joint: JointEstimate
    quantile: float  # of the interval of a value, or of one difference
    quantile_of_differences: float

    __repr__ = in_a_line

    @classmethod
    def of(
        cls,
        names: tuple[str, ...],
        joint: JointEstimate,
        quantile: Callable[[float], float] = normal_quantile,
    ) -> "Ranking":
        """The ranking by intervals of the joint estimate's confidence."""
        each = together(joint.confidence, len(names) - 1)
        return cls(names, joint, quantile(joint.confidence), quantile(each))

    @property
    def leader(self) -> int:
        """The number of the policy whose estimated value is the largest."""
        return int(self.joint.values.argmax())

    @property
    def values(self) -> dict[str, Estimate]:
        """The value of each policy; every interval stands for itself."""
        return {
            name: self.joint.value_of(number, self.quantile)
            for number, name in enumerate(self.names)
        }

    @property
    def differences(self) -> dict[str, Estimate]:
        """By how much the leader exceeds each of the others; these intervals hold together."""
        return {
            name: self.joint.difference(self.leader, number, self.quantile_of_differences)
            for number, name in enumerate(self.names)
            if number != self.leader
        }

    @cached_property
    def chances_of_best(self) -> dict[str, float]:
        """The chance that each is the best, if the errors are jointly normal."""
        chances: FloatArray = self.joint.chances_of_best()
        return dict(zip(self.names, chances.tolist(), strict=True))

    @property
    def best_first(self) -> dict[str, Estimate]:
        """The values, the leader's first."""
        return dict(sorted(self.values.items(), key=lambda named: -named[1].value))

    def table(self, columns: Mapping[str, Mapping[str, str]] | None = None) -> str:
        """The policies, the leader first; further columns, by their titles, have cells by name."""
        level = f"{100 * self.joint.confidence:.4g}% interval"
        differences = self.differences
        more = columns or {}
        head = ["policy", "value", level, "best minus it", level, "chance of best", *more]
        rows = [head]
        for name, value in self.best_first.items():
            apart = differences.get(name)
            rows.append(
                [
                    name,
                    f"{value.value:.6g}",
                    _interval(value),
                    "leads" if apart is None else f"{apart.value:.4g}",
                    "" if apart is None else _interval(apart),
                    chance_text(self.chances_of_best[name]),
                    *(cells.get(name, "") for cells in more.values()),
                ]
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in rows
        ]
        for name, value in self.values.items():
            share = f"{value.unvisited_probability:.2%}"
            if share != "0.00%":
                lines.append(f"{share} of the episodes of {name} rest on no data")
        return "\n".join(lines)

    def verdict(self, indifference: float | None = None) -> Verdict:
        """What the intervals of the differences say; smaller ones than `indifference` are none."""
        sorts: dict[str, list[str]] = {"beaten": [], "equal": [], "undecided": []}
        unseen = self.joint.unvisited_probability > MOST_UNVISITED
        silent = self.joint.silent_share
        for name, difference in self.differences.items():
            sort = _judge(difference, indifference)
            pair = [self.leader, self.names.index(name)]
            if silent is not None and silent[pair].max() > MOST_SILENT:
                sort = "undecided"
            sorts[sort].append(name)
        return Verdict(
            self.names[self.leader],
            tuple(sorts["beaten"]),
            tuple(sorts["equal"]),
            tuple(sorts["undecided"]),
            tuple(name for name, lacks in zip(self.names, unseen, strict=True) if lacks),
            self.joint.confidence,
            indifference,
        )


def _judge(difference: Estimate, indifference: float | None) -> str:
    """What an interval of the leader's difference to another says of that other."""
    low, high = difference.interval
    if difference.unvisited_probability > MOST_UNVISITED or shows_nothing(difference):
        return "undecided"
    if low > 0.0:
        return "beaten"
    within = indifference is not None and -indifference <= low and high <= indifference
    return "equal" if within else "undecided"


def shows_nothing(estimate: Estimate) -> bool:
    """Whether nothing has varied yet, in too few episodes to conclude that nothing can."""
    return estimate.standard_error == 0.0 and estimate.episodes < LEAST_WITHOUT_NOISE


def chance_text(share: float) -> str:
    """A chance, never quite certain."""
    if 0.001 <= share <= 0.999:
        return f"{100 * share:.1f}%"
    return "<0.1%" if share < 0.5 else ">99.9%"


def _interval(estimate: Estimate) -> str:
    low, high = estimate.interval
    return f"[{low:.4g}, {high:.4g}]"


def _listed(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
