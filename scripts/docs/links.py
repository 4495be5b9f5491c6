# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Turns the names of documents into links.

The documents are written to be read as plain text, too. So a document is named by its path, in a
link (`text <policy.rst>`_) or in a sentence: policy.rst, or "policy.rst, Settings" for a section.
The path is relative to the document that names it, or to Documentation/. There is a warning if a
document or a section does not exist.
"""

import posixpath
import re

from docutils import nodes
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

LOG = logging.getLogger(__name__)
ROOT = "Documentation/"
SUFFIXES = (".rst", ".md")
NAME = re.compile(r"(?<![\w./*-])((?:\.\./|\w[\w-]*/)*[\w-]+\.(?:rst|md))(?![\w/])")
# What follows the name of a document: a section's title if it begins with a capital letter,
# otherwise the next document of a list.
SECTION = re.compile(r",\s+\"?(?=[A-Z])")
# Whitespace between the words of a title
WORDS = re.compile(r"\s+")


def find(app, docname, name):
    """The document to which NAME refers in DOCNAME, or None."""
    stem = name.rsplit(".", 1)[0]
    for base in (posixpath.dirname(docname), ROOT, ""):
        found = posixpath.normpath(posixpath.join(base, stem))
        if found in app.env.found_docs and app.env.doc2path(found).endswith(name[len(stem):]):
            return found
    return None


def titles(env, docname):
    """{title: id} of the sections of a document"""
    if docname not in env.kiwarp_titles:
        env.kiwarp_titles[docname] = {
            WORDS.sub(" ", section.next_node(nodes.title).astext()): section["ids"][0]
            for section in env.get_doctree(docname).findall(nodes.section)}
    return env.kiwarp_titles[docname]


def section_of(env, target, after):
    """(length, id) of the section title with which AFTER begins, or None."""
    after = WORDS.sub(" ", after)
    found = [title for title in titles(env, target) if after.startswith(title)]
    return (max(map(len, found)), titles(env, target)[max(found, key=len)]) if found else None


def link(app, docname, target, words, anchor=""):
    return make_refnode(app.builder, docname, target, anchor, nodes.Text(words))


def pieces(app, docname, node):
    """The nodes that replace a text: links, and the text between them."""
    text, position = node.astext(), 0
    for match in NAME.finditer(text):
        target = find(app, docname, match[1])
        if not target:
            LOG.warning("%s is no document", match[1], location=node.parent)
            continue
        end, anchor = match.end(), ""
        comma = SECTION.match(text, end)
        if comma:
            section = section_of(app.env, target, text[comma.end():])
            if section:
                end, anchor = comma.end() + section[0], section[1]
            else:
                LOG.warning("%s has no section '%s...'", match[1],
                            WORDS.sub(" ", text[comma.end():comma.end() + 30]), location=node.parent)
        yield nodes.Text(text[position:match.start()])
        yield link(app, docname, target, text[match.start():end], anchor)
        position = end
    yield nodes.Text(text[position:])


def replace_names(app, doctree, docname):
    for node in list(doctree.findall(nodes.Text)):
        inside = node.parent
        while inside and not isinstance(inside, (nodes.reference, nodes.literal, nodes.title,
                                                 nodes.literal_block, nodes.comment, nodes.raw)):
            inside = inside.parent
        if not inside and NAME.search(node.astext()):
            node.parent.replace(node, list(pieces(app, docname, node)))


def replace_links(app, doctree, docname):
    for node in list(doctree.findall(nodes.reference)):
        uri = node.get("refuri", "")
        if node.get("internal") or ":" in uri or not uri.endswith(SUFFIXES):
            continue
        target = find(app, docname, uri)
        if target:
            node.replace_self(link(app, docname, target, node.astext()))
        else:
            LOG.warning("%s is no document", uri, location=node)


def resolve(app, doctree, docname):
    replace_links(app, doctree, docname)
    replace_names(app, doctree, docname)


def setup(app):
    app.connect("builder-inited", lambda app: setattr(app.env, "kiwarp_titles", {}))
    app.connect("doctree-resolved", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
