"""One way to turn `random_state` into a local generator."""

import numpy as np

from .._typing import RandomState


def generator(random_state: RandomState = None) -> np.random.Generator:
    """Make a local generator; the global random state is neither read nor moved.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator, SeedSequence or RandomState
        An int gives the same numbers at each call, a Generator goes on where it stopped, and a
        RandomState is moved on by one draw. None takes fresh entropy.

    Returns
    -------
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If `random_state` is none of these.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state must be None, a non-negative int, a numpy Generator or a RandomState; "
            f"got {random_state!r}."
        ) from error
