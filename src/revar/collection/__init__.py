"""Collection as it happens: states are numbered as they appear, nothing is sized in advance."""

from revar.collection.collection import Collection
from revar.collection.episode import Episode
from revar.collection.states import States

__all__ = ["Collection", "Episode", "States"]
