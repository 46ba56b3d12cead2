"""Finding strategies, estimators and problems by id.

A registry belongs to a package of `revar`: every module of that package is imported on the first
look-up, and so is every entry point of the group of the same name, so that adding one is adding a
file (or, for third parties, an entry point).
"""

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from revar.errors import InputError

Item = TypeVar("Item")


class Registry(Generic[Item]):
    """Items of one kind by id; `package` is searched for modules that register themselves."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._items: dict[str, Item] = {}
        self._searched = False

    def register(self, item_id: str) -> Callable[[Item], Item]:
        """Decorate the class or function that `item_id` stands for."""

        def add(item: Item) -> Item:
            known = self._items.setdefault(item_id, item)
            if _origin(known) != _origin(item):
                raise InputError(f"{self.kind} id {item_id!r} is taken by {known!r}")
            self._items[item_id] = item
            return item

        return add

    def ids(self) -> list[str]:
        """Every known id, sorted."""
        self._search()
        return sorted(self._items)

    def find(self, item_id: str) -> Item:
        """The item of that id; an unknown id names the nearest one."""
        self._search()
        if item_id not in self._items:
            near = difflib.get_close_matches(item_id, self._items, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(self.ids())}"
            raise InputError(f"unknown {self.kind} {item_id!r}; {hint}")
        return self._items[item_id]

    def build(self, item_id: str, options: Mapping[str, Any]) -> Any:
        """What the item of that id makes of these options; an unknown option names those known."""
        item: Any = self.find(item_id)
        known = list(inspect.signature(item).parameters)
        for name in options:
            if name not in known:
                hint = f"it has {', '.join(known)}" if known else "it has none"
                raise InputError(f"{self.kind} {item_id!r} has no option {name!r}; {hint}")
        try:
            return item(**options)
        except InputError:
            raise
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise InputError(
                f"{self.kind} {item_id!r} cannot be built with {dict(options)!r}: {error}"
            ) from error

    def _search(self) -> None:
        if self._searched:
            return
        self._searched = True  # at once: a module may look something up while it is imported
        try:
            package = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(package.__path__, prefix=f"{self.package}."):
                importlib.import_module(module.name)
            for entry in entry_points(group=self.package):
                self.register(entry.name)(entry.load())
        except BaseException:
            self._searched = False
            raise


def _origin(item: object) -> tuple[object, object]:
    """Where an item is defined: a module that is loaded again may register again."""
    return getattr(item, "__module__", None), getattr(item, "__qualname__", item)
