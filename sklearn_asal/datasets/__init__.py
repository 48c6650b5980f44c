"""Benchmark functions and data sets."""

from .fluid import fluid_system, load_fluid_system, sample_fluid_trajectories
from .function import Function
from .functions import branin, edge, lobes, simionescu, sinus, townsend
from .loaders import load_airfoil, load_airline, load_engine, load_lgbb

__all__ = [
    "Function",
    "branin",
    "edge",
    "fluid_system",
    "load_airfoil",
    "load_airline",
    "load_engine",
    "load_fluid_system",
    "load_lgbb",
    "lobes",
    "sample_fluid_trajectories",
    "simionescu",
    "sinus",
    "townsend",
]
