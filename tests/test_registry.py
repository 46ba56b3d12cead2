import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from revar.errors import InputError
from revar.estimators import CertaintyEquivalence, estimators, find_estimator
from revar.problems import problems
from revar.registry import Registry

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write files into a folder from which modules and distributions are imported."""
    monkeypatch.syspath_prepend(tmp_path)
    loaded = set(sys.modules)

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    yield write
    for name in set(sys.modules) - loaded:
        if name.startswith(("greetings", "visitor")):
            del sys.modules[name]


@pytest.fixture
def greetings(write: Write) -> Registry[Callable[[], str]]:
    """A registry over a package with two files that register themselves."""
    write(
        "greetings/__init__.py",
        "from revar.registry import Registry\nregistry = Registry('greeting', 'greetings')\n",
    )
    for word in ("hello", "goodbye"):
        write(
            f"greetings/{word}.py",
            f"from greetings import registry\n"
            f"@registry.register('say-{word}')\n"
            f"def {word}():\n    return '{word}'\n",
        )
    import greetings  # type: ignore[import-not-found]

    registry: Registry[Callable[[], str]] = greetings.registry
    return registry


def third_party(write: Write, entry_points: str) -> None:
    """An installed distribution with an entry point for greetings."""
    write("visitor.py", "def hola():\n    return 'hola'\n\n\ndef hello():\n    return 'other'\n")
    write("visitor-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: visitor\nVersion: 1.0\n")
    write("visitor-1.0.dist-info/entry_points.txt", f"[greetings]\n{entry_points}\n")


def test_adding_one_is_adding_a_file(greetings: Registry[Callable[[], str]]) -> None:
    assert greetings.ids() == ["say-goodbye", "say-hello"]
    assert greetings.find("say-hello")() == "hello"


def test_third_parties_add_theirs_by_entry_points(
    greetings: Registry[Callable[[], str]], write: Write
) -> None:
    third_party(write, "say-hola = visitor:hola")
    assert greetings.ids() == ["say-goodbye", "say-hello", "say-hola"]
    assert greetings.find("say-hola")() == "hola"


def test_third_parties_do_not_replace_built_in_items(
    greetings: Registry[Callable[[], str]], write: Write
) -> None:
    # The same name of the function does not make it the same function.
    third_party(write, "say-hello = visitor:hello")
    for _ in range(2):  # and asking again does not hide it
        with pytest.raises(InputError, match="greeting id 'say-hello' is taken by <function hello"):
            greetings.ids()


def test_a_file_that_cannot_be_imported_is_reported_every_time(
    greetings: Registry[Callable[[], str]], write: Write
) -> None:
    write("greetings/broken.py", "raise RuntimeError('broken on purpose')\n")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken on purpose"):
            greetings.ids()


def test_duplicate_ids_are_refused() -> None:
    registry: Registry[Callable[[], int]] = Registry("number", "revar.problems")

    @registry.register("one")
    def one() -> int:
        return 1

    with pytest.raises(InputError, match=r"number id 'one' is taken by <function .*one at"):

        @registry.register("one")
        def another() -> int:
            return 2

    registry.register("one")(one)  # the same again is no conflict


def test_unknown_ids_name_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        problems.find("gridwrld")
    assert str(caught.value) == "unknown problem 'gridwrld'; did you mean 'gridworld'?"
    with pytest.raises(InputError) as caught:
        estimators.find("certainty")
    assert str(caught.value) == (
        "unknown estimator 'certainty'; did you mean 'certainty-equivalence'?"
    )


def test_ids_far_from_everything_list_what_there_is() -> None:
    known = ", ".join(problems.ids())
    with pytest.raises(InputError, match=re.escape(f"unknown problem 'xyzzy'; known: {known}")):
        problems.find("xyzzy")


def test_estimators_are_found_by_id_or_given() -> None:
    assert find_estimator("certainty-equivalence") == CertaintyEquivalence()
    chosen = CertaintyEquivalence(known_transitions=True)
    assert find_estimator(chosen) is chosen


@pytest.mark.parametrize("estimator_id", estimators.ids())
def test_estimators_know_their_own_id(estimator_id: str) -> None:
    assert estimators.find(estimator_id).id == estimator_id


def test_the_estimators_of_the_first_release_are_there() -> None:
    assert set(estimators.ids()) >= {
        "certainty-equivalence",
        "doubly-robust",
        "importance-sampling",
        "monte-carlo",
        "per-decision-importance-sampling",
        "weighted-importance-sampling",
    }
