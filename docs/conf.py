"""How the site is built: ``make docs``. Nothing is fetched, and a warning is an error."""

import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import gmpll  # noqa: E402

project = "gmpll"
author = "The gmpll developers"
copyright = f"2026, {author}"
release = version = gmpll.__version__
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "docstrings",
    "links",
    "mathml",
    "public_names",
    "result_tables",
]

root_doc = "index"
exclude_patterns = ["_build", "_ext", "figures", "**/sg_execution_times.rst", "**/README.txt"]
templates_path = ["_templates"]
# Names of other libraries are shown but not linked: their inventories lie on the network.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(sklearn|numpy|np|scipy|sp|pandas|pd|joblib|matplotlib|dask|torch)\..*"),
]

# Pages are Markdown; formulas become MathML, which browsers draw by themselves.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
html_math_renderer = "mathml"

# Reference: the docstrings say what a parameter is, so signatures need no types.
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
public_names_package = "gmpll"
public_names_skipped = [
    "cli",
    "compare",
    "decisions",
    "pages",
    "report",
    "review",
    "serving",
    "web",
]

# What the methods are built of, on a page after what users call.
public_names_inside = ["arrays", "base", "engines", "evidence", "graph", "matching", "ordinal"]
public_names_inside += ["rounding", "side_information", "uncertainty.wrapper"]

# Examples are run on embedded and made-up data. GMPLL_GALLERY=first_steps runs only those that
# match while one is being written.
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples" / "gallery"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": os.environ.get("GMPLL_GALLERY", r"plot_"),
    "only_warn_on_example_error": False,
    "abort_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 0,
    "write_computation_times": False,
    "remove_config_comments": True,
    "within_subsection_order": "reading_order.ReadingOrder",
    "matplotlib_animations": False,
    "backreferences_dir": None,
    "capture_repr": (),
}

plot_formats = [("svg", 100)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_basedir = str(DOCS)
plot_rcparams = {"figure.dpi": 100, "svg.hashsalt": "gmpll", "font.size": 10}
plot_apply_rcparams = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "gmpll"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"start": [], "glossary": []}  # pages without others beside them
html_theme_options = {
    "logo": {"text": "gmpll"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}
