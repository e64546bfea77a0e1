"""Configuration of Sphinx, which `make docs` runs with every warning as an error."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Longbird"
author = "the Longbird authors"
version = release = installed("longbird")

extensions = [
    "myst_parser",  # the pages are Markdown
    "sphinx.ext.autodoc",  # imports the names that it documents, so that lazy names work
    "sphinx.ext.napoleon",  # docstrings in Google's style
    "site_parts",  # public names by module, fields of configurations, external links
]
exclude_patterns = ["_build"]

# Anchors for headings, named as on GitHub, where the pages are read too.
myst_heading_anchors = 3

smartquotes = False  # quotation marks often belong to a value

# A documented name in single backticks becomes a link; anything else is shown as code.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "exclude-members": "config_class"}
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"  # loads nothing from other servers
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"Longbird {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False  # see LICENSE
