#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# make docs: all documents as HTML, in docs-out/ of the tree, by Debian's Sphinx. A warning is an
# error: markup, a document that no index names, a document, section or file that is named and is
# not there (links.py).
#
# build.sh [DIR]: into DIR instead

set -eu
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

HERE=$KIW_TOP/scripts/docs
OUT=${1:-$KIW_TOP/docs-out}

need_packages python3-sphinx python3-myst-parser graphviz || die "packages missing"
mkdir -p "$OUT"
# Debian's Sphinx, whatever other Python comes first in PATH. All files are read anew: links.py
# looks from one document into others.
PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 /usr/bin/sphinx-build -E -q -n -W --keep-going -b html \
	-c "$HERE" -d "$OUT/.doctrees" "$KIW_TOP" "$OUT" || die "the documents have faults"
echo "$OUT/Documentation/index.html"
