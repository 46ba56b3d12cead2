"""Simulation of many independent adaptive collections, compiled, in parallel threads."""
