"""Figures by name: each a function of results, found in a registry."""

from revar.reports.figures.figure import figures

__all__ = ["figures"]
