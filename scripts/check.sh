#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# check.sh [--minutes N]
#
# make check: lint, with builds for the three kernels of the guests, KUnit, the
# parsers under a fuzzer for seconds, instructions per operation, the harness of the system
# tests, and these in guests: UML (plain, and with KASAN, lockdep and kmemleak on one CPU and two), the
# stock 6.1 and 6.12 kernels, one of them with two CPUs, and the newest, and pairs of guests joined
# by a cable. What processes do with verbs, also on devices of the type kiwarp-ext. Installs what it
# needs, ends with "N passed, N failed, N skipped"; what failed is said once more just before that,
# for readers who keep only the end. --minutes: no system test begins after so many minutes,
# which do not include the boot of its guest; those that are left count as skipped, and are listed.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
TMP=$(mktemp -d)
PASSED=0
FAILED=0
SKIPPED=0
KERNELS=
MINUTES=
declare -A ASIDE=()

# add PASSED FAILED SKIPPED
add() {
	PASSED=$((PASSED + $1))
	FAILED=$((FAILED + $2))
	SKIPPED=$((SKIPPED + $3))
}

# part NAME CMD...: runs a part that leaves "passed failed skipped" in $TMP/totals.
# One that leaves nothing, or fails without having counted a failure, is a failure.
part() {
	local name=$1 start=$SECONDS status
	shift
	echo "== $name"
	rm -f "$TMP/totals"
	"$@" > >(tee "$TMP/log")
	status=$?
	wait $!
	judge "$name" "$status" "$start"
}

# judge NAME STATUS START: of $TMP/log and $TMP/totals.
judge() {
	local name=$1 status=$2 start=$3 p f s
	if read -r p f s 2>/dev/null <"$TMP/totals"; then
		[ "$status" = 0 ] || [ "$f" != 0 ] || f=1
	else
		p=0 f=1 s=0
	fi
	[ "$f" = 0 ] || { echo "== failed in $name"; failures; } >>"$TMP/failed"
	grep -a ': not judged: ' "$TMP/log" >>"$TMP/failed"
	sed -n 's/^\([^ ]* [^ ]*\) late: not begun within .*/\1/p' "$TMP/log" >>"$TMP/late"
	add "$p" "$f" "$s"
	echo "== $name: $p passed, $f failed, $s skipped, $((SECONDS - start)) s"
}

# aside NAME CMD...: a part that runs beside the next ones, until at_last NAME; it leaves
# its totals in $TMP/NAME.totals.
aside() {
	local name=$1
	shift
	"$@" >"$TMP/$name.log" 2>&1 &
	ASIDE[$name]=$!
}

at_last() {
	local name=$1 start=$SECONDS status
	echo "== $name"
	wait "${ASIDE[$name]}"
	status=$?
	unset "ASIDE[$name]"
	rm -f "$TMP/totals"
	[ ! -f "$TMP/$name.totals" ] || mv "$TMP/$name.totals" "$TMP/totals"
	mv "$TMP/$name.log" "$TMP/log"
	cat "$TMP/log"
	judge "$name" "$status" "$start"
}

# failures: of the last part's log, the tests that failed, why, the last lines of what
# they printed, and of what a guest said that died.
failures() {
	grep -a '^guest: ' "$TMP/log" | grep -a -v -E ' (\?|R[0-9A-DSF][0-9XIPL]*:|FS:|CR2:|Code:) ' |
		cut -c 1-160 | head -n 40
	awk '/^not ok / { of_lint = 8; print substr($0, 1, 160); next }
	     /^# / && of_lint-- > 0 { print substr($0, 1, 160); next }
	     { of_lint = 0 }
	     /(^| )FAIL[: ]/ { on = 1; n = 0; print substr($0, 1, 160); next }
	     /^ *(failed|again): / { print substr($0, 1, 200); next }
	     on && /^ *\| .*(not ok|# |WARNING|BUG|rror)/ && n++ < 12 { print substr($0, 1, 200); next }
	     !/^ *\| / { on = 0 }' "$TMP/log" | head -n 60
}

# in_short: which tests have failed, and which of their cases, for readers who keep a few lines only
in_short() {
	echo "== in short"
	sed -n -E 's/^(.*[^ ]) +FAIL( .*|:.*|$)/\1/p; s/^ *(failed: .*)/  \1/p; s/^not ok [0-9]+ - //p' \
		"$TMP/failed" | cut -c 1-160
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

# build_kernels: what the system tests need and the cache does not have, beside all else. The
# kernel that takes longest is needed last. Whoever needs one that is not there waits for it,
# and says what is wrong with it.
build_kernels() {
	local kernel
	{
		for kernel in 6.1 6.12 uml uml-debug; do nice -n 10 "$HERE/vm/siw.sh" "$kernel"; done
		# Compilers, too
		nice -n 10 "$HERE/vm/build.sh" newest
	} >/dev/null 2>&1
}

clean_up() {
	[ -z "$KERNELS" ] || kill -- "-$KERNELS" 2>/dev/null
	[ "${#ASIDE[@]}" = 0 ] || kill "${ASIDE[@]}" 2>/dev/null
	rm -rf "$TMP"
}

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--minutes) MINUTES=$((${2:?})); shift ;;
		*) echo "usage: check.sh [--minutes N]" >&2; exit 2 ;;
		esac
		shift
	done
}

main() {
	local -a limit=()
	options "$@"
	trap clean_up EXIT
	"$HERE/vm/deps.sh" || exit 1
	# In a process group of its own, which clean_up can end
	set -m
	build_kernels &
	KERNELS=$!
	set +m
	aside selftest "$HERE/selftests/selftest.sh" --totals "$TMP/selftest.totals"
	aside kunit "$HERE/kunit/run.sh" --totals "$TMP/kunit.totals"
	aside fuzz "$HERE/fuzz/run.sh" --totals "$TMP/fuzz.totals"
	aside count "$HERE/bench/count.sh" --totals "$TMP/count.totals"
	aside lint-selftest "$HERE/lint/selftest.sh" --totals "$TMP/lint-selftest.totals"
	part lint lint
	at_last selftest
	at_last lint-selftest
	at_last kunit
	at_last fuzz
	at_last count
	[ -z "$MINUTES" ] || limit=(--seconds "$((MINUTES * 60 - SECONDS))")
	aside kiwarp-ext env KIW_LINK_TYPE=kiwarp-ext "$HERE/selftests/check" --kernel uml \
		--plan "$HERE/selftests/plan-ext" --totals "$TMP/kiwarp-ext.totals" \
		"${limit[@]}" 120 121 123 127
	part system "$HERE/selftests/check" "${limit[@]}" --totals "$TMP/totals"
	at_last kiwarp-ext
	[ ! -s "$TMP/late" ] || { echo "== not begun within $MINUTES minutes"; cat "$TMP/late"; }
	[ ! -f "$TMP/failed" ] || { cat "$TMP/failed"; in_short; }
	echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ "$FAILED" = 0 ] && [ "$PASSED" != 0 ]
}

main "$@"
