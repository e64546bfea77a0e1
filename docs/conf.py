"""How the site is built: `make docs` runs Sphinx with this, and every warning is an error."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Longbird"
author = "the Longbird authors"
version = release = installed("longbird")

extensions = [
    "myst_parser",  # the pages are Markdown
    "sphinx.ext.autodoc",  # docstrings of what is imported, so lazy names are no trouble
    "sphinx.ext.napoleon",  # Google's style of docstrings
    "site_parts",  # public names by room, fields of configurations, external links
]
exclude_patterns = ["_build"]

# Anchors for headings, as GitHub makes them: the pages are read there too.
myst_heading_anchors = 3

smartquotes = False  # quotes are often those of a value

# A name in single backticks is a link where it is a documented name, and code elsewhere.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "exclude-members": "config_class"}
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"  # loads nothing from other servers
html_title = f"Longbird {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False  # LICENSE says it all
