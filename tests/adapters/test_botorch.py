"""BoTorch: both ways."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    BudgetExhaustedError,
    GPQuerier,
    PoolExhaustedError,
    RandomQuerier,
)

from .packages import needed

torch = pytest.importorskip("torch")
needed("botorch")

from sklearn_asal.adapters.botorch import BoTorchQuerier, propose

RNG = np.random.default_rng(0)
X = RNG.uniform([0, -5], [6, 30], (6, 2))
Y, Z = np.sin(X[:, 0]), 3.5 - np.abs(X[:, 0] - 3.0)
BOUNDS = np.array([[0.0, -5.0], [6.0, 30.0]])
TENSORS = tuple(map(torch.tensor, (X, Y[:, None], BOUNDS)))


QUICK = {"n_points": 16, "num_restarts": 1, "raw_samples": 4, "random_state": 0}


class TestPropose:
    @pytest.mark.parametrize("q", [1, 3])
    @pytest.mark.parametrize("querier", [None, GPQuerier(n_candidates=50), RandomQuerier()])
    def test_is_the_querier(self, querier, q):
        found = propose(*TENSORS, q=q, querier=querier)
        own = AmortizedQuerier() if querier is None else clone(querier)
        expected = own.set_params(bounds=BOUNDS.T).query(X, Y, n_queries=q)
        assert np.array_equal(found.numpy(), expected)
        assert found.dtype == torch.float64

    @pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 2)])
    def test_with_limits(self, shape):
        z = Z if shape == (6,) else np.repeat(Z[:, None], shape[1], axis=1)
        found = propose(*TENSORS, train_Z=torch.tensor(z))
        expected = AmortizedSafeQuerier(bounds=BOUNDS.T).query(X, Y, z)
        assert np.array_equal(found.numpy(), expected)
        querier = AmortizedSafeQuerier(safety_threshold=-2.0)
        found = propose(*TENSORS, querier=querier)
        expected = clone(querier).set_params(bounds=BOUNDS.T).query(X, Y)
        assert np.array_equal(found.numpy(), expected)

    def test_single_precision_and_gradients(self):
        single = tuple(part.float() for part in TENSORS)
        single[0].requires_grad_()
        found = propose(*single)
        assert found.dtype == torch.float32
        assert not found.requires_grad

    def test_one_at_a_time_with_pending_points_is_all_at_once(self):
        together = propose(*TENSORS, q=3)
        pending = together[:0]
        for _ in range(3):
            pending = torch.vstack([pending, propose(*TENSORS, X_pending=pending)])
        assert torch.equal(pending, together)

    def test_choices(self):
        choices = torch.vstack([TENSORS[0], torch.tensor([[1.0, 1.0], [5.0, 5.0]])])
        found = propose(*TENSORS, q=2, choices=choices)
        assert sorted(found[:, 0].tolist()) == [1.0, 5.0]
        left = propose(*TENSORS, choices=choices, X_pending=choices[-1:])
        assert left.tolist() == [[1.0, 1.0]]
        with pytest.raises(PoolExhaustedError):
            propose(*TENSORS, choices=choices, X_pending=choices[-2:])

    def test_querier_is_not_changed(self):
        querier = RandomQuerier(bounds=[(0, 1), (0, 1)], budget=2)
        propose(*TENSORS, querier=querier)
        assert querier.bounds == [(0, 1), (0, 1)]
        with pytest.raises(BudgetExhaustedError):
            propose(*TENSORS, q=3, querier=querier)

    def test_invalid_data(self):
        x, y, bounds = TENSORS
        with pytest.raises(ValueError, match="train_Y has 2 outputs"):
            propose(x, torch.hstack([y, y]), bounds)
        with pytest.raises(ValueError, match=r"bounds must have shape \(2, 2\)"):
            propose(x, y, torch.zeros(3, 2))
        with pytest.raises(ValueError, match="low < high"):
            propose(x, y, bounds.flip(0))
        with pytest.raises(ValueError, match=r"X_pending must have shape \(m, 2\)"):
            propose(x, y, bounds, X_pending=torch.zeros(1, 3))
        with pytest.raises(ValueError, match="y has 5 entries"):
            propose(x, y[:5], bounds)

    def test_loop(self):
        x, y, bounds = TENSORS
        for _ in range(5):
            new = propose(x, y, bounds)
            x, y = torch.vstack([x, new]), torch.vstack([y, torch.sin(new[:, :1])])
        assert ((bounds[0] <= x) & (x <= bounds[1])).all()
        assert len(torch.unique(x, dim=0)) == 11


class TestBoTorchQuerier:
    def test_asks_where_little_is_known(self):
        x = np.linspace(0, 3, 8)[:, None]
        querier = BoTorchQuerier(bounds=(0, 10), **QUICK).fit(x, np.sin(x[:, 0]))
        assert 4 < querier.query()[0, 0] <= 10

    def test_rows_of_a_pool(self):
        querier = BoTorchQuerier(bounds=BOUNDS.T, **QUICK)
        rows = RNG.uniform(*BOUNDS, (30, 2))
        state = torch.random.get_rng_state()
        _, indices = querier.query(X, Y, pool=rows, n_queries=3, return_indices=True)
        assert torch.equal(torch.random.get_rng_state(), state)
        assert len(set(indices)) == 3
        _, again = querier.query(
            X[::-1], Y[::-1], pool=rows[::-1], n_queries=3, return_indices=True
        )
        assert np.array_equal(29 - again, indices)

    def test_best_row_by_brute_force(self):
        """By a Gaussian process with the same hyperparameters, conditioned on each row in turn."""
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        rows = RNG.random((12, 2))
        measured = RNG.random((8, 2))
        y = np.sin(6 * measured[:, 0])
        querier = BoTorchQuerier(n_points=12, random_state=0)
        (row,) = querier.query(measured, y, pool=rows, return_indices=True)[1]
        order = np.lexsort(measured.T[::-1])
        model = SingleTaskGP(torch.tensor(measured[order]), torch.tensor(y[order])[:, None])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        model.eval()

        def covariance(a, b):
            return model.covar_module(torch.tensor(a), torch.tensor(b)).to_dense().detach().numpy()

        noise, variances = model.likelihood.noise.item(), []
        for extra in rows:
            known = np.vstack([measured, extra])
            K = covariance(known, known) + noise * np.eye(9)
            k = covariance(known, rows)
            variances.append((covariance(rows, rows) - k.T @ np.linalg.solve(K, k)).trace())
        assert row == np.argmin(variances)

    @pytest.mark.parametrize("name", ["n_points", "num_restarts", "raw_samples"])
    def test_numbers_are_checked(self, name):
        with pytest.raises(ValueError, match=name):
            BoTorchQuerier(**{name: 0}).query(X, Y)
