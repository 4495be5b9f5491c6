#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# make docs: renders all documents as HTML into docs-out/ of the tree, with Debian's Sphinx.
# Warnings are errors: about markup, documents that are in no index, and references to documents, sections
# or files that do not exist (links.py).
#
# build.sh [DIR]: renders into DIR instead

set -eu
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

HERE=$KIW_TOP/scripts/docs
OUT=${1:-$KIW_TOP/docs-out}

need_packages python3-sphinx python3-myst-parser graphviz || die "packages missing"
mkdir -p "$OUT"
# Use Debian's Sphinx even if another Python comes first in PATH. Read all files again (-E), because
# links.py checks references between documents.
PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 /usr/bin/sphinx-build -E -q -n -W --keep-going -b html \
	-c "$HERE" -d "$OUT/.doctrees" "$KIW_TOP" "$OUT" || die "the documents have faults"
echo "$OUT/Documentation/index.html"
