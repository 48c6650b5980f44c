"""RandomQuerier."""

import numpy as np

from sklearn_asal import RandomQuerier

DATA = [[0.5, 0.5]], [0.0]


def test_uniform_over_the_bounds():
    querier = RandomQuerier(bounds=[(0, 6), (-5, 30)], random_state=0)
    points = querier.query(*DATA, n_queries=2000)
    unit = (points - [0, -5]) / [6, 35]
    assert ((unit >= 0) & (unit <= 1)).all()
    np.testing.assert_allclose(unit.mean(axis=0), 0.5, atol=0.03)
    np.testing.assert_allclose(
        np.quantile(unit, [0.1, 0.9], axis=0), [[0.1] * 2, [0.9] * 2], atol=0.03
    )


def test_uniform_over_the_rows_of_a_pool():
    # Nine rows close together and one far from them, which is nearest to half of all points.
    pool = np.vstack([np.full((9, 2), 0.1) + 0.001 * np.arange(9)[:, None], [[0.9, 0.9]]])
    picked = [
        RandomQuerier(random_state=seed).query(*DATA, pool=pool, return_indices=True)[1][0]
        for seed in range(400)
    ]
    counts = np.bincount(picked, minlength=10)
    assert counts.min() > 15
    assert counts.max() < 75


def test_seeds():
    first, same, other = (RandomQuerier(random_state=seed).query(*DATA) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)
    # A new observation brings a new point.
    more = RandomQuerier(random_state=0).query([[0.5, 0.5], [0.1, 0.2]], [0.0, 0.1])
    assert not np.array_equal(first, more)
