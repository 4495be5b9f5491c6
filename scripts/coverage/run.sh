#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [--out DIR] [--add] [--compare] [--record] [--no-html] [TEST...]
# make coverage: which lines and branches of the drivers the tests execute. Builds the modules for
# uml-gcov, runs KUnit and the system tests, prints a line per file, and writes HTML to
# DIR/html/index.html (DIR: coverage in the cache). A TEST is kunit, pairs (tests on two guests),
# or the beginning of the name of a system test. Without any: KUnit, all system tests, pairs.
#   --add      keeps the counts of earlier runs in DIR, which must be of the same modules
#   --compare  fails if a file is below its floor in scripts/coverage/floor
#   --record   writes scripts/coverage/floor
# Without --compare and --record, no floor is checked: it only matters that the tests pass.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"

# The environment of a calling make must not reach the kernel's make.
unset MAKEFLAGS MFLAGS MAKELEVEL
KERNEL=uml-gcov
# Tests on pairs of guests that execute code which no other test does. A guest that is killed leaves
# no counts.
PAIRS=(015 330 340 500 505)
OUT=$KIW_CACHE/coverage
ADD=
HTML=1
REPORT=()
RECORD=
KUNIT=
WITH_PAIRS=
SINGLE=
TESTS=()

usage() { sed -n '4,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--out) OUT=${2:?}; shift ;;
		--add) ADD=1 ;;
		--compare) REPORT+=(--compare) ;;
		--record) RECORD=1 ;;
		--no-html) HTML= ;;
		-*) usage ;;
		kunit) KUNIT=1 ;;
		pairs) WITH_PAIRS=1 ;;
		*) TESTS+=("$1") SINGLE=1 ;;
		esac
		shift
	done
	[ -n "$KUNIT$WITH_PAIRS$SINGLE" ] || KUNIT=1 WITH_PAIRS=1 SINGLE=1
}

# collect DIR: takes the counts of all guests that left their results below DIR.
collect() {
	local guest
	while IFS= read -r -d '' guest; do
		mv "$guest" "$OUT/counts/" || return 1
	done < <(find "$1" -type d -path '*/gcov/*' -prune -print0)
}

# ran WHAT CMD...: runs CMD, whose results go to DIR/run; sets FAILED if it fails.
ran() {
	local what=$1
	shift
	rm -rf "$OUT/run"
	mkdir -p "$OUT/run"
	"$@" --out "$OUT/run" || FAILED+=" $what"
	collect "$OUT/run"
	echo "$what" >>"$OUT/of"
}

run_tests() {
	local check="$HERE/../selftests/check"
	[ -z "$KUNIT" ] || ran KUnit "$HERE/../kunit/run.sh" --kernel "$KERNEL" --modules "$MODS"
	[ -z "$SINGLE" ] || ran "${TESTS[*]:-all system tests}" "$check" --modules "$MODS" \
		--kernel "$KERNEL/1of2" --kernel "$KERNEL/2of2" "${TESTS[@]}"
	[ -z "$WITH_PAIRS" ] || ran "pairs: ${PAIRS[*]}" "$check" --modules "$MODS" \
		--kernel "$KERNEL+pair" "${PAIRS[@]}"
}

# start: prepares DIR for these modules.
start() {
	mkdir -p "$OUT"
	exec 8>"$OUT/lock"
	flock -n 8 || die "another run uses $OUT"
	if [ -z "$ADD" ]; then
		rm -rf "$OUT/counts" "$OUT/of" "$OUT/modules"
	elif [ -f "$OUT/modules" ] && [ "$(cat "$OUT/modules")" != "${MODS##*/}" ]; then
		die "what is in $OUT is of other modules; run without --add"
	fi
	mkdir -p "$OUT/counts"
	echo "${MODS##*/}" >"$OUT/modules"
}

html() {
	need_packages lcov || die "packages missing"
	rm -rf "$OUT/html"
	run_logged "$OUT/genhtml.log" genhtml -q --branch-coverage --prefix "$KIW_TOP" \
		--output-directory "$OUT/html" "$OUT/info" && echo "HTML: $OUT/html/index.html"
}

main() {
	local MODS FAILED='' status=0
	local -a counts
	options "$@"
	need_packages gcc rsync || die "packages missing"
	MODS=$("$KIW_VM/build.sh" "$KERNEL") || die "the build failed"
	start
	run_tests
	mapfile -t counts < <(find "$OUT/counts" -mindepth 1 -maxdepth 1)
	[ "${#counts[@]}" -gt 0 ] || die "no guest has left any counts"
	[ -z "$RECORD" ] || REPORT+=(--record "$(sort -u "$OUT/of" | paste -sd';' | sed 's/;/; /g')")
	"$HERE/report.py" --notes "$MODS/gcno" --info "$OUT/info" "${REPORT[@]}" "${counts[@]}" || status=1
	[ -z "$HTML" ] || html || status=1
	rm -rf "$OUT/run"
	[ -z "$FAILED" ] || { echo "tests failed:$FAILED"; status=1; }
	return "$status"
}

main "$@"
