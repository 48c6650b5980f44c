"""Pretraining of policies on simulated Gaussian-process functions."""
