"""What an experiment declares: problems x strategies x estimators, budgets, runs, its report.

Declarations are TOML files; those that come with the package are in `built_in/`.
"""

import difflib
import hashlib
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from revar.errors import InputError
from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.estimator import Estimator, estimators
from revar.model.question import Question
from revar.problems import Problem, problems
from revar.registry import Registry
from revar.strategies.strategy import Strategy, strategies

Record = TypeVar("Record")

# The experiments of the paper and beyond it, in the order in which they are best read.
PAPER = (
    "tree",
    "gridworld",
    "ablation",
    "regret",
    "examples",
    "flow",
    "coverage",
    "peers",
    "compare",
    "rare-failure",
)
CRITICS = "critics"  # a study with results of its own kind


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An item of a registry with its options, and its label in tables."""

    id: str
    label: str = ""
    options: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The label, or the id with its options."""
        if self.label or not self.options:
            return self.label or self.id
        return f"{self.id} ({', '.join(f'{key}={value}' for key, value in self.options.items())})"


class StrategyChoice(Choice, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A strategy, with estimators of its own in place of the experiment's.

    `apart` collects for each policy of a difference by itself, with an equal share of the budget,
    and estimates its value from these episodes alone.
    """

    estimators: tuple[str | Choice, ...] = ()
    # Where it is not set it is not written: digests of declarations without it stay as they are.
    apart: bool | msgspec.UnsetType = msgspec.UNSET


class Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The size of an experiment: how many runs of how many episodes."""

    runs: int
    episodes: int | tuple[int, ...]


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One experiment.

    `episodes` is one budget, along which estimates are made at log-spaced checkpoints, or a list
    of budgets, each a collection of its own that is estimated at its end.
    """

    name: str
    title: str
    question: str
    runs: int
    episodes: int | tuple[int, ...]
    problems: tuple[str | Choice, ...]
    strategies: tuple[str | StrategyChoice, ...]
    estimators: tuple[str | Choice, ...] = ("certainty-equivalence",)
    known_transitions: bool = False  # whether costs and limits take the transitions as known
    quick: Size | None = None
    answer: str = "order"
    figures: tuple[str, ...] = ("mse-curves", "scaled-curves")
    tables: tuple[str, ...] = ("errors",)
    unstated: tuple[str, ...] = ()  # settings that the paper leaves open
    command: str = ""  # that reproduces it, if not `revar reproduce NAME`

    def __post_init__(self) -> None:
        for field in ("problems", "strategies", "estimators"):
            if not getattr(self, field):
                raise InputError(f"experiment {self.name!r} has no {field}")
        if not self.name or not all(c.isalnum() or c in "-_" for c in self.name):
            raise InputError(
                f"the name of an experiment is {self.name!r}; letters, digits, - and _ are allowed"
            )
        for size in (self, self.quick):
            if size is not None:
                _check_size(self.name, size)
        _check_distinct(self.name, "problem", [c.name for c in self.problem_choices()])
        _check_distinct(self.name, "strategy", [c.name for c in self.strategy_choices()])
        for strategy in self.strategy_choices():
            _check_distinct(
                self.name, "estimator", [c.name for c in self.estimator_choices(strategy)]
            )

    def budgets(self) -> tuple[int, ...]:
        """The budgets, each a collection of its own."""
        return _budgets(self.episodes)

    def problem_choices(self) -> list[Choice]:
        """The problems as records."""
        return [_choice(item) for item in self.problems]

    def strategy_choices(self) -> list[StrategyChoice]:
        """The strategies as records."""
        return [
            StrategyChoice(id=item) if isinstance(item, str) else item for item in self.strategies
        ]

    def estimator_choices(self, strategy: StrategyChoice) -> list[Choice]:
        """The estimators for this strategy's data."""
        return [_choice(item) for item in strategy.estimators or self.estimators]

    def at_size(self, *, quick: bool) -> "Experiment":
        """The experiment as it is run: the full one, or its quick version where it has one."""
        if not quick or self.quick is None:
            return msgspec.structs.replace(self, quick=None)
        return msgspec.structs.replace(
            self, runs=self.quick.runs, episodes=self.quick.episodes, quick=None
        )

    def digest(self) -> str:
        """A hash of all that is declared."""
        return digest_of(self)


def digest_of(record: Any) -> str:
    """The first 16 hexadecimal digits of a record's SHA-256, independent of the order of keys."""
    return hashlib.sha256(msgspec.json.encode(record, order="deterministic")).hexdigest()[:16]


def build_problem(choice: Choice) -> Problem:
    """Build the chosen problem."""
    problem: Problem = problems.build(choice.id, choice.options)
    return problem


def build_strategy(choice: Choice) -> Strategy:
    """Build the chosen strategy."""
    strategy: Strategy = strategies.build(choice.id, choice.options)
    return strategy


def build_estimator(choice: Choice) -> Estimator:
    """Build the chosen estimator."""
    estimator: Estimator = estimators.build(choice.id, choice.options)
    return estimator


def load_built_in(name: str) -> Experiment:
    """Load the built-in experiment of that name."""
    source = files("revar.experiments").joinpath("built_in", f"{name}.toml")
    if name not in PAPER and not (name.isidentifier() and source.is_file()):
        known = (*PAPER, CRITICS)
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise InputError(f"unknown experiment {name!r}; {hint}")
    return parse_experiment(source.read_text(encoding="utf-8"), f"experiment {name!r}")


def read_experiment(path: Path) -> Experiment:
    """Read an experiment from a TOML file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return parse_experiment(text, str(path))


def parse_experiment(text: str, origin: str) -> Experiment:
    """Read an experiment from TOML text; errors name its `origin`."""
    try:
        declared = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{origin} is not TOML: {error}") from error
    return record_of(declared, Experiment, origin)


def record_of(declared: Any, kind: type[Record], origin: str) -> Record:
    """Turn plain data into a record; errors name the field and what was found."""
    try:
        return msgspec.convert(declared, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{origin}: {str(error).replace('`', '')}") from error


def check_experiment(experiment: Experiment) -> Experiment:
    """Build everything that the experiment names, see that it fits, and return the experiment."""
    for choice in experiment.problem_choices():
        _check_question(experiment, choice.name, build_problem(choice).question)
    for strategy in experiment.strategy_choices():
        valid = build_strategy(strategy).estimators
        for choice in experiment.estimator_choices(strategy):
            build_estimator(choice)
            if choice.id not in valid:
                raise InputError(
                    f"strategy {strategy.name!r} does not fit estimator {choice.id!r}; it fits "
                    f"{', '.join(valid)}"
                )
    return experiment


def _check_question(experiment: Experiment, problem: str, question: Question) -> None:
    """See that every strategy can answer what is asked."""
    count = len(question.policies)
    for strategy in experiment.strategy_choices():
        for choice in experiment.estimator_choices(strategy):
            if count > 1 and not strategy.apart and choice.id != CertaintyEquivalence.id:
                raise InputError(
                    f"problem {problem!r} asks about {count} policies, and estimator "
                    f"{choice.id!r} about one; use {CertaintyEquivalence.id!r}, or collect for "
                    f"each apart"
                )
        for size in (experiment, experiment.quick or experiment):
            least = min(_budgets(size.episodes))
            if strategy.apart and least < count:
                raise InputError(
                    f"strategy {strategy.name!r} collects apart for each of {count} policies, and "
                    f"the budget is {least}"
                )


def _budgets(episodes: int | tuple[int, ...]) -> tuple[int, ...]:
    return (episodes,) if isinstance(episodes, int) else episodes


def parse_choice(text: str, registry: Registry[Any]) -> Choice:
    """Read a choice from the command line: id, or id:option=value,option=value."""
    item_id, _, rest = text.partition(":")
    registry.find(item_id)
    options: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise InputError(
                f"{registry.kind} {text!r}: {part!r} is no option; write id:option=value"
            )
        option = name.strip().replace("-", "_")
        if option in options:
            raise InputError(f"{registry.kind} {text!r} has the option {option!r} twice")
        options[option] = _plain_value(value.strip())
    return Choice(id=item_id, options=options)


def _plain_value(text: str) -> Any:
    """A number or truth value as TOML writes it; anything else is a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _choice(item: str | Choice) -> Choice:
    return Choice(id=item) if isinstance(item, str) else item


def _check_size(name: str, size: "Size | Experiment") -> None:
    if size.runs < 2:
        raise InputError(f"experiment {name!r} has {size.runs} runs; at least 2 are needed")
    budgets = _budgets(size.episodes)
    if not budgets or any(b < 1 for b in budgets) or list(budgets) != sorted(set(budgets)):
        raise InputError(
            f"experiment {name!r} has episodes = {size.episodes}; a positive whole number, or "
            f"increasing ones"
        )


def _check_distinct(name: str, kind: str, labels: list[str]) -> None:
    for label in labels:
        if not label.isprintable():
            raise InputError(
                f"experiment {name!r} has the {kind} {label!r}; a label is of characters that can "
                f"be printed"
            )
        if labels.count(label) > 1:
            raise InputError(
                f"experiment {name!r} has the {kind} {label!r} twice; give each a label of its own"
            )
