"""How sphinx builds the documentation."""

import collections
import inspect
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

import sklearn_attention

HERE = Path(__file__).parent
sys.path.append(str(HERE))

from _evidence import draw  # noqa: E402

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
    "sphinx-mathjax-offline",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# The gallery's notebooks and its tables of seconds are no pages.
exclude_patterns = ["_build", "**.ipynb", "**/sg_execution_times.rst", "sg_execution_times.rst"]
templates_path = ["_templates"]

autodoc_typehints = "none"  # the docstrings give the types
numpydoc_show_class_members = False  # the templates do
# What is copied is code without prompts and without what it prints.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
viewcode_line_numbers = True
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "ignore_pattern": r"demo\.py",
    "subsection_order": [
        f"../examples/{folder}"
        for folder in [
            "first_steps",
            "foundations",
            "smoothing",
            "tables",
            "sequences",
            "forecasting",
        ]
    ],
    "backreferences_dir": "gallery/backreferences",
    "doc_module": "sklearn_attention",
    "inspect_global_variables": False,  # what a script names is what its page belongs to
    "reference_url": {"sklearn_attention": None},
    "download_all_examples": False,
    "show_signature": False,
    # Of examples without a picture.
    "default_thumb_file": str(HERE / "images" / "one_average.png"),
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    # What draws has its picture on the page.
    "ignore_repr_types": r"sklearn_attention\.inspection|matplotlib",
}

toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {release}"
html_theme_options = {
    "logo": {"text": f"{project} {release}"},
    "icon_links": [
        {
            "name": "Source on GitHub",
            "url": "https://github.com/sklearn-attention/sklearn-attention",
            "icon": "fa-brands fa-github",
        }
    ],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "collapse_navigation": True,
    "show_toc_level": 2,
}
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
# The first page has its links in the bar above and in cards.
html_sidebars = {"index": [], "**": ["sidebar-all"]}
html_show_sourcelink = False


def draw_evidence(app):
    """Draw what the benchmarks have stored, for the first page."""
    (HERE / "gallery").mkdir(exist_ok=True)
    draw(HERE / "gallery" / "evidence.png")


def skip_fields(app, what, name, obj, skip, options):
    """Leave out the fields of named tuples: the class's docstring lists them."""
    return True if isinstance(obj, collections._tuplegetter) else None


# Estimators and functions: all but the folders.
NAMES = {
    name
    for name in sklearn_attention.__all__
    if not inspect.ismodule(getattr(sklearn_attention, name))
}


def link_names(app, doctree):
    """Let the name of an estimator, wherever it stands as code, lead to its API page."""
    inside = (nodes.title, nodes.reference, addnodes.pending_xref)
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().partition("(")[0]
        if name in NAMES and not isinstance(literal.parent, inside):
            place = {"refdoc": app.env.docname, "reftarget": f"sklearn_attention.{name}"}
            link = addnodes.pending_xref("", refdomain="py", reftype="obj", **place)
            literal.replace_self(link)
            link += literal


def strip_code(app, doctree):
    """Leave out the empty line that tests of the code need at its end."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.astext().rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    app.connect("builder-inited", draw_evidence)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("doctree-read", link_names)
    app.connect("doctree-read", strip_code)
