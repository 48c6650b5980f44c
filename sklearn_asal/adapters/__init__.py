"""Queriers in the loops of other packages, and strategies of other packages as queriers.

Each module needs the package that it is named after, and says so where it is missing. Nothing is
imported here.
"""
