"""Sphinx: `make docs`."""

project = "capnwire"
author = "The capnwire authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
autodoc_member_order = "bysource"
suppress_warnings = ["myst.header"]
# Docstrings are written for people in front of a terminal: Markdown's backquotes, no roles.
default_role = "code"
