"""Counts and spans of time in words."""

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def duration(seconds: float) -> str:
    """A span of time in its two largest units."""
    whole = max(0, int(seconds))
    parts: list[str] = []
    for name, size in UNITS:
        if whole >= size or (name == "s" and not parts):
            parts.append(f"{whole // size} {name}")
            whole %= size
    return " ".join(parts[:2])


def counted(number: int, noun: str) -> str:
    """1 step, 2,000 steps."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
