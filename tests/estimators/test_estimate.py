import pytest

from revar.errors import InputError
from revar.estimators import Estimate


def test_the_interval_is_normal() -> None:
    low, high = Estimate(10.0, 2.0, 50).interval
    # 1.959963984540054 is the 97.5 percent quantile of the standard normal distribution.
    assert low == pytest.approx(10 - 2 * 1.959963984540054, rel=1e-12)
    assert high == pytest.approx(10 + 2 * 1.959963984540054, rel=1e-12)
    low, high = Estimate(10.0, 2.0, 50, confidence=0.5).interval
    assert high - low == pytest.approx(4 * 0.6744897501960817, rel=1e-12)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, -0.5, float("nan")])
def test_impossible_confidences_are_refused(confidence: float) -> None:
    with pytest.raises(InputError, match="it must lie between 0 and 1"):
        Estimate(0.0, 1.0, 1, confidence=confidence)


def test_an_estimate_reads_as_a_sentence() -> None:
    assert str(Estimate(1.5, 0.25, 40)) == (
        "value 1.5, 95% interval [1.01001, 1.98999] from 40 episodes"
    )
    assert str(Estimate(1.5, 0.25, 40, unvisited_probability=0.125)).endswith(
        "; 12.50% of the policy's episodes rest on no data"
    )
