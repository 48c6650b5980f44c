import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student

from sklearn_asal.benchmarks import inference
from sklearn_asal.benchmarks.inference import METHODS, FixedGP, draw_data_set, infer, log_evidence
from sklearn_asal.surrogates.kernels import rbf, squared_differences
from sklearn_asal.surrogates.likelihood import Prior


def integrated(X, y, lengthscales, noise, zero_mean):
    """Log evidence by quadrature over the scale and the mean."""
    K = rbf(X, X, lengthscales) + noise**2 * np.eye(len(X))
    log_variances = np.linspace(-8, 12, 401)
    means = np.array([0.0]) if zero_mean else np.linspace(-60, 60, 2401)
    residuals = (y - means[:, None]) / np.exp(0.5 * log_variances)[:, None, None]
    terms = multivariate_normal(np.zeros(len(X)), K).logpdf(residuals).reshape(401, len(means))
    # Jacobian of the residuals, prior (1 / v) ** (1 + shape), and dv = v dlog(v).
    terms -= (0.5 * len(y) + (1.0 if zero_mean else 0.0)) * log_variances[:, None]
    steps = np.log(log_variances[1] - log_variances[0])
    return logsumexp(terms) + steps + (0.0 if zero_mean else np.log(means[1] - means[0]))


@pytest.mark.parametrize("number", [0, 1])
def test_oracle_against_quadrature(number):
    data = draw_data_set(2, 6, 0, number)
    model = infer("oracle", data)
    truth = data.lengthscales, data.noise, data.zero_mean
    known = integrated(data.X, data.y, *truth)
    found = [
        integrated(np.vstack([data.X, x]), np.append(data.y, y), *truth) - known
        for x, y in zip(data.X_test[:6], data.y_test[:6], strict=True)
    ]
    locations, scales = model.predict_members(data.X_test[:6])
    expected = student.logpdf(data.y_test[:6], model.dof_, locations[0], scales[0])
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("zero_mean", [False, True])
def test_evidence_and_its_gradient(zero_mean):
    data = draw_data_set(3, 12, 0, int(zero_mean))
    thetas = np.random.default_rng(0).uniform(-2, 0.5, (5, 4))
    squares = squared_differences(data.X, data.X)
    found = [log_evidence(theta, squares, data.y, zero_mean) for theta in thetas]
    model = FixedGP(data.X, data.y, np.exp(thetas[:, :3]), np.exp(thetas[:, 3]), zero_mean)
    assert [value for value, _ in found] == pytest.approx(model.log_evidence_)
    for theta, (_, gradient) in zip(thetas, found, strict=True):
        numeric = approx_fprime(
            theta, lambda theta: log_evidence(theta, squares, data.y, zero_mean)[0]
        )
        assert gradient == pytest.approx(numeric, abs=1e-4)


def test_evidence_of_hyperparameters_against_quadrature():
    data = draw_data_set(1, 5, 0, 1)
    others = [draw_data_set(1, 5, seed, 1) for seed in range(3)]
    expected = [
        integrated(data.X, data.y, other.lengthscales, other.noise, True) for other in others
    ]
    lengthscales = np.array([other.lengthscales for other in others])
    noises = np.array([other.noise for other in others])
    model = FixedGP(data.X, data.y, lengthscales, noises, True, n_kept=2)
    assert np.diff(model.log_evidence_) == pytest.approx(np.diff(expected), abs=1e-3)
    best = np.sort(expected)[:0:-1]
    assert model.member_weights_ == pytest.approx(np.exp(best - logsumexp(best)), abs=1e-3)


def test_score_of_a_mixture():
    class Two:
        member_weights_, dof_ = np.array([0.25, 0.75]), 5.0

        def predict_members(self, X):
            return np.array([[0.0], [1.0]]) + X[:, 0], np.array([[1.0], [2.0]]) * np.ones(len(X))

    data = draw_data_set(1, 5, 0, 0)
    x, y, f = data.X_test[:, 0], data.y_test, data.f_test
    density = 0.25 * student.pdf(y - x, 5) + 0.75 * student.pdf((y - 1 - x) / 2, 5) / 2
    expected = np.log(density).mean(), np.sqrt(np.mean((x + 0.75 - f) ** 2))
    assert inference.score(Two(), data) == pytest.approx(expected)


def test_fit_is_the_maximum_of_a_grid():
    data = draw_data_set(1, 30, 0, 0)
    prior = Prior(1)
    log_lengthscales, log_noises = np.meshgrid(np.linspace(-4, 4, 161), np.linspace(-6, 1, 141))

    def objective(log_lengthscale, log_noise):
        sets = np.exp(log_lengthscale)[:, None], np.exp(log_noise)
        value = FixedGP(data.X, data.y, *sets, data.zero_mean).log_evidence_
        value = value + norm.logpdf(log_lengthscale, prior.mean[0], prior.std[0])
        width = np.sqrt(prior.std[1] ** 2 + prior.std[2] ** 2)
        return value + norm.logpdf(log_noise, prior.mean[2] - prior.mean[1], width)

    factors = infer("fitted", data)._factors
    found = objective(np.log(factors.lengthscales[:, 0]), np.log(factors.noises))
    best = objective(log_lengthscales.ravel(), log_noises.ravel()).max()
    assert best - 1e-6 <= found[0] <= best + 0.1


def test_steps_go_uphill_and_are_bounded():
    for number in range(10):
        data = draw_data_set(3, 15, 0, number)
        squares = squared_differences(data.X, data.X)

        def objective(theta, data=data, squares=squares):
            return log_evidence(theta, squares, data.y, data.zero_mean)

        start = np.log([0.5, 0.5, 0.5, 0.1])
        end = inference.ascend(start, objective, 15, step=0.05, longest=0.3)
        assert objective(end)[0] > objective(start)[0]
        far = inference.ascend(start, objective, 15, step=1e6, longest=0.3)
        assert np.abs(far - start).max() <= 0.6 + 1e-12


def test_bank():
    lengthscales, noises = inference.bank(8)
    assert lengthscales.shape == (128, 8)
    assert len(np.unique(np.column_stack([lengthscales, noises]), axis=0)) == 128
    assert 0.12 < lengthscales.min() < 0.14  # twice as long in eight dimensions
    assert 3.0 < lengthscales.max() < 3.2
    assert 0.01 < noises.min() < noises.max() < 0.5
    assert np.flatnonzero(np.ptp(lengthscales, axis=1) == 0).tolist() == list(range(0, 128, 16))
    # Spread evenly on the logarithmic scale.
    assert np.log(noises).mean() == pytest.approx(np.log([0.01, 0.5]).mean(), abs=0.1)


def test_data_sets():
    data, same = (draw_data_set(2, 7, 3, 1, n_test=400) for _ in range(2))
    for name, part in vars(data).items():
        assert np.array_equal(part, getattr(same, name))
    assert [draw_data_set(2, 7, 3, i).zero_mean for i in range(4)] == [False, True, False, True]
    assert data.X.shape == (7, 2)
    assert np.std(data.y_test - data.f_test) == pytest.approx(data.noise, rel=0.15)
    for other in (draw_data_set(2, 7, 4, 1), draw_data_set(2, 7, 3, 2)):
        assert not np.isin(other.X, data.X).any()


def test_no_method_knows_more_than_the_truth():
    scores = inference.compare(60, 0, [2], [10], n_test=20)
    log_densities = {method: values[..., 0].mean() for method, values in scores.items()}
    truth = log_densities.pop("oracle")
    assert all(value < truth for value in log_densities.values())


def test_the_transformer_s_row_ends_at_eight_features():
    scores = inference.compare(1, 0, [8, 9], [3], n_test=5)
    assert [np.isnan(part).any() for part in scores["pfn"]] == [False, True]
    assert not np.isnan(scores["network"]).any()


def test_tables(capsys):
    arguments = ["--tasks", "2", "--features", "1", "3", "--observations", "3", "5"]
    inference.main(arguments)
    lines = capsys.readouterr().out.splitlines()
    scores = inference.compare(2, 0, [1, 3], [3, 5])
    for part, rows in enumerate((lines[:9], lines[10:19])):
        assert rows[1].split() == ["D/n", "1/3", "1/5", "3/3", "3/5", "mean"]
        assert tuple(row.split()[0] for row in rows[2:]) == METHODS
        for row in rows[2:]:
            name, *numbers = row.split()
            expected = scores[name][..., part].mean(axis=2).ravel()
            numbers = np.array(numbers, dtype=float)
            assert numbers == pytest.approx([*expected, expected.mean()], abs=6e-4)
    assert lines[-1].startswith("ms per fit: network ")
    assert len(lines) == 21


def test_one_observation_has_no_scale(capsys):
    with pytest.raises(ValueError, match="observations must be at least 2"):
        inference.compare(1, 0, [1], [1])
    with pytest.raises(SystemExit):
        inference.main(["--observations", "1"])
    assert "--observations must be at least 2" in capsys.readouterr().err
