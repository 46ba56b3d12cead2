"""Frozen data and its validation: models, policies, tasks, statistics, trajectories."""
