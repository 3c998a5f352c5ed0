"""Sphinx configuration. Nothing needs a network, neither the build nor the pages: no intersphinx, no remote assets."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for our extensions, the last three

project = "Mercer"
author = "The Mercer developers"
copyright = "2026, The Mercer developers"
release = installed_version("mercer")
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",  # the pages of benchmarks/results are Markdown
    "statements",
    "benchmark_pages",
    "offline",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
exclude_patterns += [f"{place}/**/*.{kind}" for place in ("gallery", "tutorials") for kind in ("py", "ipynb", "md5")]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # result pages are shown as they were written, whatever the steps of their headings

# A reference that leads nowhere is an error in CI. Without intersphinx, those to other libraries do so by
# design.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|np|scipy|sklearn|numba|torch|pandas|polars|matplotlib|collections|typing)(\..*)?"),
]

# --- API pages ----------------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings give types and shapes; annotations would repeat them
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False  # the class template lists the members itself
numpydoc_xref_param_type = False

doctest_global_setup = """
import numpy as np
try:
    import torch
except ImportError:  # the one example on tensors is left out
    torch = None
try:
    import anndata
except ImportError:  # tests/cells runs the examples on cells where it is
    anndata = None
"""

# --- gallery ------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["../tutorials", "../examples"],
    "gallery_dirs": ["tutorials", "gallery"],
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"/plot_",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("mercer",),
    "reference_url": {"mercer": None},
    "image_scrapers": ("matplotlib",),
    "download_all_examples": False,
    "show_memory": False,
    "plot_gallery": True,
    "write_computation_times": False,  # those pages fetch scripts from elsewhere
}

# --- HTML ---------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "Mercer"
html_static_path = ["_static"]
html_css_files = ["statements.css", "pages.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "Mercer"},
    "navigation_with_keys": False,
    "show_prev_next": False,
    "header_links_before_dropdown": 4,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
_ALONE = ("certificate", "installation", "changelog", "papers", "errata", "where_we_lose", "race")
html_sidebars = {page: [] for page in _ALONE}


def skip_inherited_from_sklearn(app, what, name, member, skip, options):
    """Leave out what scikit-learn's base classes add: its docstrings point to pages that are not ours."""
    origin = getattr(getattr(member, "fget", None) or member, "__module__", None) or ""
    return True if origin.startswith("sklearn.") else skip


def setup(app):
    """Connect the hook above."""
    app.connect("autodoc-skip-member", skip_inherited_from_sklearn)
