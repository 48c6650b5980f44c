"""The data folder, as in the tests of the data sets."""

from ..datasets.conftest import data_home

__all__ = ["data_home"]
