#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# deb.sh [DIR]: DIR (dist/ in the tree) gets kiwarp-dkms_VERSION_all.deb and kiwarp-tools_VERSION_all.deb,
# built in a copy of the last commit, or of the tree if that is no clone. lintian has to
# have nothing to say.

set -eu
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

DIR=${1:-$KIW_TOP/dist}

# copy DIR: the sources, as users get them
copy() {
	mkdir -p "$1"
	cd "$KIW_TOP"
	if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
		[ -z "$(git status --porcelain)" ] || note "what is not committed is left out"
		git -c tar.umask=0022 -c core.autocrlf=false -c core.eol=lf \
			-c core.attributesFile=/dev/null archive HEAD |
			tar -x -C "$1"
		SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
		export SOURCE_DATE_EPOCH
	else
		tar -c --exclude=./dist --exclude='*.o' --exclude='*.ko' --exclude='.*.cmd' . |
			tar -x -C "$1"
	fi
}

main() {
	local work
	need_packages debhelper dh-dkms dpkg-dev lintian || die "packages missing"
	work=$(mktemp -d "${TMPDIR:-/tmp}/kiwarp-deb.XXXXXX")
	# shellcheck disable=SC2064 # now
	trap "rm -rf '$work'" EXIT
	(copy "$work/kiwarp" && cd "$work/kiwarp" &&
		run_logged "$work/log" dpkg-buildpackage -us -uc -b) || exit 1
	lintian --allow-root --info --fail-on error,warning "$work"/*.changes || exit 1
	mkdir -p "$DIR"
	cp "$work"/*.deb "$DIR"
	(cd "$DIR" && ls kiwarp-*.deb)
}

main "$@"
