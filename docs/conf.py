"""Sphinx configuration."""

import sklearn_asal

project = "sklearn-asal"
author = "the sklearn-asal developers"
copyright = "2026, the sklearn-asal developers"
release = version = sklearn_asal.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # so that pages can link to each other's sections, as on GitHub
templates_path = ["_templates"]
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in fewer words
numpydoc_show_class_members = False
autodoc_mock_imports = ["skactiveml", "modAL", "botorch", "ax"]  # of the adapters
exclude_patterns = ["_build", "auto_examples/*.ipynb"]
html_theme = "pydata_sphinx_theme"
html_title = project  # with the version, it lies over the navigation bar
html_theme_options = {"header_links_before_dropdown": 7}
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "write_computation_times": False,
    "remove_config_comments": True,
}
