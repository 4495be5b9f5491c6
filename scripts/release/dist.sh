#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# dist.sh [DIR]: DIR (dist/ in the tree) gets kiwarp-VERSION.tar.gz, of the last commit, and SHA256SUMS.
# The same commit gives the same bytes with the same git and gzip, no matter who runs it and when:
# git archive gives all files the commit's time, and gzip -n writes none.

set -eu -o pipefail
TOP=$(cd "$(dirname "$0")/../.." && pwd)
DIR=${1:-$TOP/dist}

cd "$TOP"
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" != "$(pwd -P)" ]; then
	echo "dist.sh: this is not a clone; a tarball is made of a commit" >&2
	exit 1
fi
version=$(git show HEAD:VERSION)
name=kiwarp-$version
[ -z "$(git status --porcelain)" ] || echo "dist.sh: what is not committed is left out" >&2
mkdir -p "$DIR"
# The user's configuration and .git/info/attributes would change the bytes.
bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT
git clone -q --bare --shared --template= . "$bare"
git --git-dir="$bare" -c tar.umask=0022 -c core.autocrlf=false -c core.eol=lf \
	-c core.attributesFile=/dev/null archive --format=tar --prefix="$name/" HEAD |
	gzip -9n >"$DIR/$name.tar.gz.new"
mv "$DIR/$name.tar.gz.new" "$DIR/$name.tar.gz"
(cd "$DIR" && sha256sum "$name.tar.gz" >SHA256SUMS)
echo "$DIR/$name.tar.gz"
