"""How sphinx builds the documentation."""

import collections
import inspect
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

import sklearn_attention

HERE = Path(__file__).parent
sys.path.append(str(HERE))

from _chooser import draw_chooser  # noqa: E402
from _displays import draw_displays  # noqa: E402
from _evidence import draw_charts  # noqa: E402
from _hero import draw_heroes  # noqa: E402
from _thumbnails import draw_thumbnails  # noqa: E402

project = "sklearn-attention"
author = "the sklearn-attention developers"
copyright = f"2026, {author}"
release = version = sklearn_attention.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
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

# Links into other packages. The stored inventories list only what is cited, so that a build
# needs no network.
PEERS = {
    "numpy": "https://numpy.org/doc/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "scikit-learn": "https://scikit-learn.org/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "torch": "https://docs.pytorch.org/docs/stable/",
}
intersphinx_mapping = {name: (url, f"inventories/{name}.txt") for name, url in PEERS.items()}
nitpicky = True  # a link that leads nowhere is an error

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
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    # What draws has its picture on the page.
    "ignore_repr_types": r"sklearn_attention\.inspection|matplotlib",
}

# Sections of an estimator's page; methods of none of them come last.
METHODS = {
    "Fit": ["fit", "partial_fit", "update", "fit_transform"],
    "Predict": [
        "predict", "predict_proba", "predict_log_proba", "score_samples", "cdf", "sample",
        "transform", "perplexity", "score",
    ],
    "Uncertainty": [
        "predict_interval", "predict_quantiles", "predict_cdf", "confidence_band", "backtest",
    ],
    "Explain": [
        "explain", "explain_features", "partial_dependence", "predict_gradient", "local_slopes",
        "feature_significance", "attention_maps", "smoother_matrix", "summary",
    ],
}  # fmt: skip
autosummary_context = {
    "method_sections": METHODS,
    # What scikit-learn adds to all estimators alike.
    "inherited_methods": [
        "__init__", "get_metadata_routing", "get_params", "set_output", "set_params",
        "set_fit_request", "set_partial_fit_request", "set_predict_request",
        "set_score_request",
    ],
}  # fmt: skip

toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {release}"
html_theme_options = {
    "logo": {
        "text": project,
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
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
html_favicon = "_static/logo.svg"
html_css_files = ["site.css"]
# The first page has its links in the bar above and in cards.
html_sidebars = {"index": [], "**": ["sidebar-all"]}
html_show_sourcelink = False


def draw_pictures(app):
    """Draw the pictures of the first page, of the page on choosing and of the API pages."""
    folder = HERE / "gallery"
    folder.mkdir(exist_ok=True)
    draw_heroes(folder)
    draw_charts(folder)
    draw_displays(folder)
    draw_chooser(folder)
    draw_thumbnails(folder)


def skip_fields(app, what, name, obj, skip, options):
    """Leave out the fields of named tuples: the class's docstring lists them."""
    return True if isinstance(obj, collections._tuplegetter) else None


def own_names():
    """Full names of what the package exports, by the names that texts use."""
    names = {}
    for name in sklearn_attention.__all__:
        full = f"sklearn_attention.{name}"
        if inspect.ismodule(module := getattr(sklearn_attention, name)):
            for part in module.__all__:
                names |= dict.fromkeys(
                    [part, f"{name}.{part}", f"{full}.{part}"], f"{full}.{part}"
                )
        else:
            names[name] = full
    return names


def peer_names():
    """Full names of what the inventories list, by the names that texts use."""
    names = {}
    for peer in PEERS:
        lines = (HERE / "inventories" / f"{peer}.txt").read_text("utf-8").splitlines()
        for full in (line.split()[0] for line in lines if not line.startswith("#")):
            short = full.rpartition(".")[2]
            names[full] = full
            if short[0].isupper():
                names[short] = full
    return names


NAMES = peer_names() | own_names()


# Functions of a folder, such as `attention`, have names that a text may use for something else.
LINKED = {
    name: full
    for name, full in NAMES.items()
    if name[0].isupper() or "." in name or full == f"sklearn_attention.{name}"
}


def link_names(app, doctree):
    """Let names of estimators and functions that stand as code lead to their pages."""
    inside = (nodes.title, nodes.reference, addnodes.pending_xref)
    for literal in list(doctree.findall(nodes.literal)):
        target = LINKED.get(literal.astext().partition("(")[0])
        if target and not isinstance(literal.parent, inside):
            place = {"refdoc": app.env.docname, "reftarget": target}
            link = addnodes.pending_xref("", refdomain="py", reftype="obj", **place)
            literal.replace_self(link)
            link += literal


def find_short_name(app, env, node, text):
    """Find what a role names without its folder, such as `attend` in docstrings."""
    target = NAMES.get(node["reftarget"])
    if node.get("refdomain") == "py" and target and target != node["reftarget"]:
        domain = env.domains["py"]
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, text)
    return None


def describe_cards(app, doctree):
    """Write the first sentence of examples, which else is a tooltip, on their cards."""
    sentence = ""
    for raw in doctree.findall(nodes.raw):
        html = raw.astext()
        if card := re.search(r'(class="sphx-glr-thumbcontainer".*?) tooltip="([^"]*)"', html):
            sentence = card[2]
            html = html.replace(card[0], card[1])
        elif "sphx-glr-thumbnail-title" in html:
            html = html.replace("</div>", f'</div><div class="card-text">{sentence}</div>', 1)
        raw[:] = [nodes.Text(html)]


def strip_code(app, doctree):
    """Leave out the empty line that tests of the code need at its end."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.astext().rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    app.connect(
        "builder-inited", draw_pictures, priority=400
    )  # before the gallery takes thumbnails
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("doctree-read", link_names)
    app.connect("doctree-read", describe_cards)
    app.connect("doctree-read", strip_code)
    app.connect("missing-reference", find_short_name)
