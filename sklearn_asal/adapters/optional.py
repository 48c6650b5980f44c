"""The packages that adapters are for, none of which this package depends on."""

import importlib

#: The module of each extra, and what it is called where packages are installed from.
PACKAGES = {
    "skactiveml": ("skactiveml", "scikit-activeml"),
    "modal": ("modAL", "modAL-python"),
    "botorch": ("botorch", "botorch"),
    "ax": ("ax", "ax-platform"),
}


def missing(extra):
    """What to raise where the package of an extra cannot be imported.

    Parameters
    ----------
    extra : str
        One of ``PACKAGES``.

    Returns
    -------
    ImportError
    """
    module, package = PACKAGES[extra]
    return ImportError(
        f"sklearn_asal.adapters.{extra} needs the package {package} (module {module}); install it "
        f"with pip install 'sklearn-asal[{extra}]'."
    )


def adapter(extra):
    """Import the adapter of an extra.

    Parameters
    ----------
    extra : str
        One of ``PACKAGES``.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        Its package is not installed; the message names the extra.
    """
    return importlib.import_module(f"sklearn_asal.adapters.{extra}")
