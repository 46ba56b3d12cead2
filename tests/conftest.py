"""Settings that all tests share."""

from hypothesis import settings

# Compilation on first use is slow, so no deadline; derandomized, so that a run can be repeated.
settings.register_profile("revar", deadline=None, derandomize=True, database=None)
settings.load_profile("revar")
