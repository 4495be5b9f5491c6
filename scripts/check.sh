#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# make check: everything that can be checked here. Lint on all kernels, KUnit, the
# parsers under a fuzzer for seconds, instructions per operation, and the system tests in guests: UML (plain and with KASAN, lockdep and kmemleak), the
# stock 6.1 and 6.12 kernels, one of them with two CPUs, and two guests joined by a
# cable. Installs what it needs, ends with "N passed, N failed, N skipped"; what
# failed is said once more just before that, for readers who keep only the end.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
TMP=$(mktemp -d)
PASSED=0
FAILED=0
SKIPPED=0

# add PASSED FAILED SKIPPED
add() {
	PASSED=$((PASSED + $1))
	FAILED=$((FAILED + $2))
	SKIPPED=$((SKIPPED + $3))
}

# part NAME CMD...: runs a part that leaves "passed failed skipped" in $TMP/totals.
# One that leaves nothing, or fails without having counted a failure, is a failure.
part() {
	local name=$1 status p f s start=$SECONDS
	shift
	echo "== $name"
	rm -f "$TMP/totals"
	"$@" > >(tee "$TMP/log")
	status=$?
	wait $!
	if read -r p f s 2>/dev/null <"$TMP/totals"; then
		[ "$status" = 0 ] || [ "$f" != 0 ] || f=1
	else
		p=0 f=1 s=0
	fi
	[ "$f" = 0 ] || { echo "== failed in $name"; failures; } >>"$TMP/failed"
	add "$p" "$f" "$s"
	echo "== $name: $p passed, $f failed, $s skipped, $((SECONDS - start)) s"
}

# failures: of the last part's log, the tests that failed, why, the last lines of what
# they printed, and of what a guest said that died.
failures() {
	grep -a '^guest: ' "$TMP/log" | grep -a -v -E ' (\?|R[0-9A-DSF][0-9XIPL]*:|FS:|CR2:|Code:) ' |
		cut -c 1-160 | head -n 40
	awk '/ FAIL / { on = 1; n = 0; print substr($0, 1, 160); next }
	     /^ *failed: / { print substr($0, 1, 200); next }
	     on && /^ *\| .*(not ok|# |WARNING|BUG|rror)/ && n++ < 12 { print substr($0, 1, 200); next }
	     !/^ *\| / { on = 0 }' "$TMP/log" | head -n 60
}

# Lint prints its totals in its last line.
lint() {
	local status
	"$HERE/lint/check.sh" | tee "$TMP/lint.log"
	status=${PIPESTATUS[0]}
	sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' \
		"$TMP/lint.log" | tail -n 1 >"$TMP/totals"
	return "$status"
}

main() {
	trap 'rm -rf "$TMP"' EXIT
	"$HERE/vm/deps.sh" || exit 1
	part lint lint
	part kunit "$HERE/kunit/run.sh" --totals "$TMP/totals"
	part fuzz "$HERE/fuzz/run.sh" --totals "$TMP/totals"
	part count "$HERE/bench/count.sh" --totals "$TMP/totals"
	part system "$HERE/selftests/check" --totals "$TMP/totals"
	part pair "$HERE/selftests/check" --pair --kernel uml --kernel 6.1 --totals "$TMP/totals"
	[ ! -f "$TMP/failed" ] || cat "$TMP/failed"
	echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ "$FAILED" = 0 ] && [ "$PASSED" != 0 ]
}

main "$@"
