# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Makes links of the names of documents, which are written for those who read plain text.

A document is named by its path, in a link (`text <policy.rst>`_) or in a sentence: policy.rst, or
"policy.rst, Settings", which is a section of it. The path is relative to the document that names
it, or to Documentation/. A name of no document, and a section that the document does not have, are
warnings.
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
# After a name: something that is a title if it begins with a capital. A list of documents has a
# name next, which does not.
SECTION = re.compile(r",\s+\"?(?=[A-Z])")
# Words, in titles and after names, with blanks of any kind between them
WORDS = re.compile(r"\s+")


def find(app, docname, name):
    """The document that NAME means in DOCNAME, or None."""
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
    """(length, id) of the title at the beginning of AFTER, or None: there is none"""
    after = WORDS.sub(" ", after)
    found = [title for title in titles(env, target) if after.startswith(title)]
    return (max(map(len, found)), titles(env, target)[max(found, key=len)]) if found else None


def link(app, docname, target, words, anchor=""):
    return make_refnode(app.builder, docname, target, anchor, nodes.Text(words))


def pieces(app, docname, node):
    """The nodes that replace a text: links, and what is between them."""
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
