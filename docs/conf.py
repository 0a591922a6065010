"""How sphinx builds the documentation."""

import collections

import sklearn_attention

project = "sklearn-attention"
author = "the sklearn-attention developers"
copyright = f"2026, {author}"
release = version = sklearn_attention.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

autodoc_typehints = "none"  # the docstrings give the types
numpydoc_show_class_members = False  # the templates do
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2

html_theme = "pydata_sphinx_theme"
html_title = project
html_theme_options = {"navbar_end": ["theme-switcher"], "show_toc_level": 2}
html_show_sourcelink = False
# Pages without sections of their own need no column for them.
html_sidebars = {
    page: [] for page in ["changelog", "contributing", "house", "kernel_attention", "sources"]
}


def skip_fields(app, what, name, obj, skip, options):
    """Leave out the fields of named tuples: the class's docstring lists them."""
    return True if isinstance(obj, collections._tuplegetter) else None


def setup(app):
    app.connect("autodoc-skip-member", skip_fields)
