"""The ensemble of processes by scikit-learn, in double precision and from scratch."""

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

FACTORS = 0.5, 1.0, 2.0
NOISES = 0.03, 0.1, 0.3


class ReferenceEnsemble:
    """Processes with fixed hyperparameters, weighted by their marginal likelihoods.

    Parameters
    ----------
    X, y : ndarray of shape (n, n_features) and (n,)
    lengthscale : float or ndarray of shape (n_features,)
    noises : sequence of float
    pending : ndarray of shape (n_pending, n_features), optional
        Inputs that lower the variances and leave the means.
    """

    def __init__(self, X, y, lengthscale, noises=NOISES, pending=()):
        everything = np.vstack([X, *pending]) if len(pending) else X
        self.members, self.evidence = [], []
        for factor in FACTORS:
            for noise in noises:
                kernel = RBF(factor * np.asarray(lengthscale)) + WhiteKernel(noise**2)
                mean, std = (
                    GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0) for _ in range(2)
                )
                mean.fit(X, y)
                std.fit(everything, np.zeros(len(everything)))
                self.members.append((mean, std, noise))
                self.evidence.append(mean.log_marginal_likelihood_value_)
        self.evidence = np.array(self.evidence)
        weights = np.exp(self.evidence - self.evidence.max())
        self.weights = weights / weights.sum()

    def moments(self, points):
        """Means and standard deviations of each member, noise included, ``(n_members, m)``."""
        means = [mean.predict(points) for mean, _, _ in self.members]
        stds = [std.predict(points, return_std=True)[1] for _, std, _ in self.members]
        return np.array(means), np.array(stds)

    def predict(self, points):
        """Mean and standard deviation of the mixture."""
        means, stds = self.moments(points)
        mean = self.weights @ means
        return mean, np.sqrt(self.weights @ (stds**2 + means**2) - mean**2)

    def probability_of_positive(self, points):
        """By all members."""
        means, stds = self.moments(points)
        return self.weights @ norm.cdf(means / stds)

    def probability_at(self, points):
        """By the most probable member."""
        means, stds = self.moments(points)
        best = self.weights.argmax()
        return norm.cdf(means[best] / stds[best])

    def variance_reduction(self, points, reference, weights):
        """By the most probable member: weighted variances before, less those after."""
        _, std, noise = self.members[self.weights.argmax()]
        known, kernel = std.X_train_, std.kernel_.k1
        K = kernel(known) + noise**2 * np.eye(len(known))
        across = kernel(points, known)
        left = kernel(points, reference) - across @ np.linalg.solve(K, kernel(known, reference))
        variance = 1 + noise**2 - np.sum(across.T * np.linalg.solve(K, across.T), axis=0)
        return np.square(left) @ weights / variance
