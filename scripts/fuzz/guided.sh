#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# guided.sh [--kernel NAME] [--unguided] [--record] [--out DIR] [TARGET...]
# Fuzzes the whole driver in guests, guided by which of its code runs: builds the modules with
# kiwarp_cover (ktest/cover.c), and runs each TARGET for FUZZ_SECONDS (600) in a guest of its own,
# one after another. A TARGET is wire, rings or calls, or one of these on devices of one link type,
# such as calls-kiwarp-ext; all unless given. NAME is uml-debug unless given, or uml. Prints what
# each target has reached, and failures with a command that runs the input again. DIR (fuzz-guided
# in the cache) has a directory for each target, with all that its guest has left.
#   --unguided  counts, but makes each input anew, for comparison
#   --record    replaces scripts/fuzz/corpus by what the runs have kept
#
# KIW_SEED=N is the seed of all targets.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"

ALL=(wire-kiwarp wire-kiwarp-ext rings-kiwarp rings-kiwarp-ext calls-kiwarp calls-kiwarp-ext)
KERNEL=uml-debug
RECORD=
OUT=$KIW_CACHE/fuzz-guided
TARGETS=()

usage() { sed -n '4,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# add NAME: the targets that it stands for
add() {
	local target count=${#TARGETS[@]}
	for target in "${ALL[@]}"; do
		case $target in "$1" | "$1"-kiwarp*) TARGETS+=("$target") ;; esac
	done
	[ "${#TARGETS[@]}" -gt "$count" ] || usage
}

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--kernel) KERNEL=${2:?}; shift ;;
		--unguided) export KIW_FUZZ=--unguided ;;
		--record) RECORD=1 ;;
		--out) OUT=${2:?}; shift ;;
		-*) usage ;;
		*) add "$1" ;;
		esac
		shift
	done
	[ "${#TARGETS[@]}" -gt 0 ] || TARGETS=("${ALL[@]}")
}

# unsaid DIR TARGET TEST: how to run the last inputs again, if the fuzzer did not say which of them
# has failed, because the guest has died, for example.
unsaid() {
	[ ! -s "$1/fuzz/$2.failed" ] && [ -s "$1/fuzz/$2.last" ] || return 0
	echo "The last inputs, and how to shorten them:"
	echo "again: KIW_INPUT=\"\$(cat $1/fuzz/$2.last)\" scripts/selftests/check --kernel $KERNEL $3"
	echo "scripts/fuzz/shorten.py $1/fuzz/$2.last scripts/selftests/check --kernel $KERNEL $3"
}

# fuzz TARGET
fuzz() {
	local test=256-corpus dir=$OUT/$1 status=0
	case $1 in calls-*) test=131-calls ;; esac
	rm -rf "${dir:?}"
	echo "$1"
	KIW_TARGETS=$1 KIW_COVER=1 KIW_SOAK=${FUZZ_SECONDS:-600} \
		"$HERE/../selftests/check" --kernel "$KERNEL" --out "$dir" "$test" || status=1
	grep -h -s '^# *{"event": "fuzz"' "$dir/$KERNEL"/*.ktap | sed 's/^# *//'
	[ "$status" = 0 ] || unsaid "$dir/$KERNEL" "$1" "$test"
	if [ -n "$RECORD" ] && [ -f "$dir/$KERNEL/fuzz/$1.corpus" ]; then
		cp "$dir/$KERNEL/fuzz/$1.corpus" "$HERE/corpus/$1.txt"
	fi
	return "$status"
}

main() {
	local target status=0
	options "$@"
	mkdir -p "$OUT"
	for target in "${TARGETS[@]}"; do
		fuzz "$target" || status=1
	done
	return "$status"
}

main "$@"
