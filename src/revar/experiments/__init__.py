"""Experiments: declared in small files, run in parts that can be resumed, stored as tables."""
