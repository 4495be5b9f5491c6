# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Configuration of Sphinx for build.sh. The tree itself is the source directory."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "kiwarp"
release = version = (HERE / "../../VERSION").read_text(encoding="ascii").strip()
html_title = f"kiwarp {release}"

extensions = ["myst_parser", "sphinx.ext.graphviz", "links"]
root_doc = "Documentation/index"
include_patterns = ["*.md", "Documentation/**"]
exclude_patterns = [".git", "docs-out"]
# Text in the default role would be emphasised silently.
default_role = None
highlight_language = "none"
smartquotes = False

graphviz_output_format = "svg"
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "fixed_sidebar": True}
html_sidebars = {"**": ["globaltoc.html", "searchbox.html"]}
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
