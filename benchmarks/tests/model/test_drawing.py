"""Series that several scenarios draw."""

from nightwire.benchmarks.model.drawing import distribution


def test_a_distribution_rises_from_none_to_all() -> None:
    (line,) = distribution({"ours": [0.3, 0.1, 0.2]}).lines
    assert list(line.x) == sorted(line.x)
    assert (line.y[0], line.y[-1], line.x[0], line.x[-1]) == (0.0, 1.0, 100.0, 300.0)
