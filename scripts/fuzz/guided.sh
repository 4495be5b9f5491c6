#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# guided.sh [--kernel NAME] [--unguided] [--record] [--out DIR] [TEST...]
# Fuzzes the whole driver in a guest, guided by which of its code runs: builds the modules with
# kiwarp_cover (ktest/cover.c), and runs the tests 256-corpus (the wire and the rings) and 131-calls,
# or those given, for FUZZ_SECONDS (600) each. NAME is uml-debug unless given, or uml. Prints what
# each target has reached. DIR (fuzz-guided in the cache) gets what the guest has left.
#   --unguided  counts, but makes each input anew, for comparison
#   --record    replaces scripts/fuzz/corpus by what the runs have kept
#
# KIW_SEED=N is the seed. A failure is printed with a command that runs the input again: KIW_INPUT,
# "TARGET: LINE; LINE", makes the test run this input only. KIW_FUZZ: options of guide.py.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"

KERNEL=uml-debug
RECORD=
OUT=$KIW_CACHE/fuzz-guided
TESTS=()

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--kernel) KERNEL=${2:?}; shift ;;
		--unguided) export KIW_FUZZ=--unguided ;;
		--record) RECORD=1 ;;
		--out) OUT=${2:?}; shift ;;
		-*) sed -n '4,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
		*) TESTS+=("$1") ;;
		esac
		shift
	done
	[ "${#TESTS[@]}" -gt 0 ] || TESTS=(256 131)
}

main() {
	local status=0 file
	options "$@"
	rm -rf "${OUT:?}/$KERNEL"
	KIW_COVER=1 KIW_SOAK=${FUZZ_SECONDS:-600} "$HERE/../selftests/check" --kernel "$KERNEL" \
		--out "$OUT" "${TESTS[@]}" || status=1
	grep -h '^# *{"event": "fuzz"' "$OUT/$KERNEL"/*.ktap | sed 's/^# *//'
	[ -n "$RECORD" ] || return "$status"
	for file in "$OUT/$KERNEL"/fuzz/*.corpus; do
		[ ! -f "$file" ] || cp "$file" "$HERE/corpus/$(basename "$file" .corpus).txt"
	done
	return "$status"
}

main "$@"
