#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [--out DIR] [--add] [--part I/N | --report] [--compare] [--record] [--no-html] [TEST...]
# make coverage: which lines and branches of the drivers the tests execute. Builds the modules for
# uml-gcov, runs KUnit and the system tests, prints a line per file, and writes HTML to
# DIR/html/index.html (DIR: coverage in the cache). A TEST is kunit, pairs (tests on two guests),
# or the beginning of the name of a system test. Without any: KUnit, all system tests, pairs.
#   --add      keeps the counts of earlier runs in DIR, which must be of the same modules
#   --part     runs the Ith of N parts of the tests, and only leaves their counts in DIR. KUnit is in
#              the first part, the pairs in the last. With --add, a part that has ended is not run
#              again. Parts can run at the same time.
#   --report   runs nothing, and reports what is in DIR, which must be of the modules of this tree
#   --compare  fails if a file is below its floor in scripts/coverage/floor
#   --record   writes scripts/coverage/floor and Documentation/coverage.rst, unless KUnit, system
#              tests or pairs are missing in DIR
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
# Guests that share the system tests at the same time
GUESTS=4
OUT=$KIW_CACHE/coverage
ADD=
HTML=1
REPORT=()
RECORD=
KUNIT=
WITH_PAIRS=
SINGLE=
RUN=
PART=
ONLY_REPORT=
TESTS=()

usage() { sed -n '4,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--out) OUT=${2:?}; shift ;;
		--add) ADD=1 ;;
		--part) PART=${2:?}; shift ;;
		--report) ONLY_REPORT=1 ADD=1 ;;
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
	case $PART in
	'') [ -n "$KUNIT$WITH_PAIRS$SINGLE" ] || KUNIT=1 WITH_PAIRS=1 SINGLE=1 ;;
	*/*) part_options "${PART%/*}" "${PART#*/}" ;;
	*) usage ;;
	esac
}

# part_options PART PARTS
part_options() {
	[ -z "$KUNIT$WITH_PAIRS$SINGLE$ONLY_REPORT$RECORD" ] || usage
	case $1$2 in *[!0-9]*) usage ;; esac
	if [ "$1" -lt 1 ] || [ "$2" -lt "$1" ]; then usage; fi
	SINGLE=1
	[ "$1" != 1 ] || KUNIT=1
	[ "$1" != "$2" ] || WITH_PAIRS=1
}

# collect DIR: takes the counts of all guests that left their results below DIR.
collect() {
	local guest
	while IFS= read -r -d '' guest; do
		mv "$guest" "$OUT/counts/" || return 1
	done < <(find "$1" -type d -path '*/gcov/*' -prune -print0)
}

# ran WHAT CMD...: runs CMD; sets FAILED if it fails. Only when CMD has ended, its counts are taken
# and what it was is noted. Of a part, what was noted is not run again.
ran() {
	local what=$1 failed=''
	shift
	if [ -n "$PART" ] && has "$what"; then
		echo "done before: $what"
		return
	fi
	mkdir -p "$RUN"
	"$@" --out "$RUN" || failed=' (with failures)' FAILED+=" $what"
	collect "$RUN"
	echo "$what$failed" >>"$OUT/of"
	rm -rf "$RUN"
}

run_tests() {
	local check="$HERE/../selftests/check" what=${TESTS[*]:-all system tests} part=1 parts=1 i
	local -a kernels=()
	if [ -n "$PART" ]; then
		what="system tests, part $PART" part=${PART%/*} parts=${PART#*/}
	fi
	for ((i = part; i <= GUESTS * parts; i += parts)); do
		kernels+=(--kernel "$KERNEL/${i}of$((GUESTS * parts))")
	done
	[ -z "$KUNIT" ] || ran KUnit "$HERE/../kunit/run.sh" --kernel "$KERNEL" --modules "$MODS"
	[ -z "$SINGLE" ] || ran "$what" "$check" --modules "$MODS" "${kernels[@]}" "${TESTS[@]}"
	[ -z "$WITH_PAIRS" ] || ran "pairs: ${PAIRS[*]}" "$check" --modules "$MODS" \
		--kernel "$KERNEL+pair" "${PAIRS[@]}"
}

# start: prepares DIR for these modules.
start() {
	mkdir -p "$OUT"
	exec 8>"$OUT/lock"
	if [ -n "$ADD$ONLY_REPORT" ]; then
		flock -s -n 8 || die "another run uses $OUT"
	else
		flock -n 8 || die "another run uses $OUT"
	fi
	if [ -z "$ADD" ]; then
		rm -rf "$OUT/counts" "$OUT/of" "$OUT/modules"
	elif [ -f "$OUT/modules" ] && [ "$(cat "$OUT/modules")" != "${MODS##*/}" ]; then
		die "what is in $OUT is of other modules; run without --add"
	fi
	mkdir -p "$OUT/counts"
	echo "${MODS##*/}" >"$OUT/modules"
	# From here on, others may add theirs.
	flock -s 8
	RUN=$(mktemp -d "$OUT/run.XXXXXX")
	trap 'rm -rf "$RUN"' EXIT
}

# has WHAT: these tests have been run.
has() { grep -q -x -e "$1" -e "$1 (with failures)" "$OUT/of" 2>/dev/null; }

# all_parts: all system tests have been run, at once or as all parts of some number.
all_parts() {
	local parts i lacks=''
	! has "all system tests" || return 0
	while read -r parts; do
		lacks=''
		for ((i = 1; i <= parts; i++)); do
			has "system tests, part $i/$parts" || lacks+=" $i/$parts"
		done
		[ -n "$lacks" ] || return 0
		note "missing: parts$lacks of the system tests"
	done < <(sed -n 's/^system tests, part .*\/\([0-9]*\).*/\1/p' "$OUT/of" 2>/dev/null | sort -u)
	[ -n "$lacks" ] || note "missing: all system tests"
	return 1
}

# is_all: all that there is has been run.
is_all() {
	local status=0 what
	for what in KUnit "pairs: ${PAIRS[*]}"; do
		has "$what" || { note "missing: $what"; status=1; }
	done
	all_parts && return $status
}

# report: prints, compares and records what is in DIR; its status says whether that went well.
report() {
	local -a counts
	local status=0
	mapfile -t counts < <(find "$OUT/counts" -mindepth 1 -maxdepth 1)
	[ "${#counts[@]}" -gt 0 ] || die "no guest has left any counts"
	[ -z "$RECORD" ] || is_all || die "not recorded"
	[ -z "$RECORD" ] || REPORT+=(--record "$(sort -u "$OUT/of" | paste -sd';' | sed 's/;/; /g')")
	PYTHONDONTWRITEBYTECODE=1 "$HERE/report.py" --notes "$MODS/gcno" --info "$OUT/info" \
		--reach "$OUT/reach" "${REPORT[@]}" "${counts[@]}" || status=1
	[ -z "$HTML" ] || html || status=1
	return $status
}

html() {
	need_packages lcov || die "packages missing"
	rm -rf "$OUT/html"
	run_logged "$OUT/genhtml.log" genhtml -q --branch-coverage --prefix "$KIW_TOP" \
		--output-directory "$OUT/html" "$OUT/info" && echo "HTML: $OUT/html/index.html"
}

main() {
	local MODS FAILED='' status=0
	options "$@"
	# Before the build, which takes a while
	if [ -n "$ONLY_REPORT" ] && [ -n "$RECORD" ]; then is_all || die "not recorded"; fi
	need_packages gcc rsync || die "packages missing"
	MODS=$("$KIW_VM/build.sh" "$KERNEL") || die "the build failed"
	start
	[ -n "$ONLY_REPORT" ] || run_tests
	[ -n "$PART" ] || report || status=1
	[ -z "$FAILED" ] || { echo "tests failed:$FAILED"; status=1; }
	return "$status"
}

main "$@"
