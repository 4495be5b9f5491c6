#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [--kernel uml|uml-debug|uml-gcov] [--totals FILE] [--modules DIR] [--out DIR]: builds
# the KUnit module, runs it in a UML guest, prints a line per suite and the totals of test cases.
# Status 0 when something ran, nothing failed and the kernel log is clean.
# --totals: FILE gets the totals, "passed failed skipped", in one line. --modules: uses the module
# in DIR instead of building it. --out: DIR gets the results of the guest.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

KERNEL=uml
TOTALS=
MODULES=
OUT=

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--kernel) KERNEL=${2:?} ;;
		--totals) TOTALS=${2:?} ;;
		--modules) MODULES=${2:?} ;;
		--out) OUT=${2:?} ;;
		*) die "usage: run.sh [--kernel uml|uml-debug|uml-gcov] [--totals FILE] [--modules DIR] [--out DIR]" ;;
		esac
		shift 2
	done
}

# guest OUT MODULES: runs the suites in a guest; unloads the modules again, so that their exit code
# runs.
guest() {
	local m=kiwarp_kunit
	"$KIW_VM/run.sh" --kernel "$KERNEL" --timeout 300 --modules "$2" \
		--out "$1" -- bash -c ". /host/selftests/lib/rc
			dmesg_mark
			modprobe $m && modprobe -r $m && /host/init --counts kunit && dmesg_check"
}

main() {
	local mods totals suites bad=0 p f s
	options "$@"
	mods=${MODULES:-$("$KIW_VM/build.sh" "$KERNEL")} || die "build failed"
	[ -f "$mods/kiwarp_kunit.ko" ] || die "the build gave no kiwarp_kunit.ko"
	if [ -z "$OUT" ]; then
		OUT=$(mktemp -d "${TMPDIR:-/tmp}/kiwarp-kunit.XXXXXX")
		trap 'rm -rf "$OUT"' EXIT
	fi
	guest "$OUT" "$mods" || bad=1
	suites=$(cat "$KIW_TOP"/kunit/*.c | grep -c '^kunit_test_suite(')
	totals=$("$KIW_VM/ktap.py" kunit "$OUT/dmesg" "$suites" | tee "$OUT/report" | tail -n 1)
	sed '$d' "$OUT/report"
	read -r p f s <<<"${totals#TOTALS }"
	if [ $bad = 1 ] && [ "$f" = 0 ]; then
		echo "kunit: the module or the kernel log is not in order"
		f=1
	fi
	[ "$p" -gt 0 ] || f=$((f + 1))
	[ -z "$TOTALS" ] || echo "$p $f $s" >"$TOTALS"
	echo "kunit: $p passed, $f failed, $s skipped"
	[ "$f" = 0 ]
}

main "$@"
