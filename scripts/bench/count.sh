#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# count.sh [--renew | --ext | --record FILE] [--modules DIR] [--totals FILE]
# Counts the instructions that a guest executes per operation, under QEMU with -icount: they
# are the same however busy the machine is. Fails if a count of the module, or of the whole kernel,
# exceeds that in count/baseline.json by more than the tolerance. If that file is of another kernel
# or compiler, the commit that has recorded it is counted first, with these, and compared with.
# --renew writes that file, --record another one. --ext counts with devices of the type kiwarp-ext,
# and shows how much that is more. --modules: of the modules in DIR, which are not built then.
# --totals: FILE gets the totals, "passed failed skipped". See Documentation/performance.rst.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"
# shellcheck source=scripts/vm/guest.sh
. "$KIW_VM/guest.sh"

BASELINE=$HERE/count/baseline.json
RECORD=
EXT=
TOTALS=
MODULES=
JOB=

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--renew) RECORD=$BASELINE ;;
		--record) RECORD=${2:?}; shift ;;
		--ext) EXT=1 ;;
		--modules) MODULES=${2:?}; shift ;;
		--totals) TOTALS=${2:?}; shift ;;
		*) die "usage: count.sh [--renew | --ext | --record FILE] [--modules DIR] [--totals FILE]" ;;
		esac
		shift
	done
}

build_programs() {
	run_logged "$1/log" gcc -g -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
		-o "$1/bench" "$HERE"/*.c "$KIW_TOP/scripts/verbs/common.c" \
		-lrdmacm -libverbs -lpthread &&
		run_logged "$1/log" gcc -O2 -std=gnu11 -Wall -Wextra -Werror -shared -fPIC \
			-o "$1/plugin.so" "$HERE/count/plugin.c"
}

build_all() {
	need_packages gcc libc6-dev libibverbs-dev librdmacm-dev || die "packages missing"
	load_kernel 6.12
	[ -n "$MODULES" ] || MODULES=$("$KIW_VM/build.sh" 6.12) || die "the build failed"
	G_MODULES=("$MODULES")
	BUILD="$K_RELEASE, gcc $(gcc -dumpfullversion)"
	P_DIR=$(cached count-programs "$(content_key "$HERE"/*.[ch] "$HERE/crc32c/sse.h" \
		"$HERE"/count/*.[ch] "$KIW_TOP"/scripts/verbs/common.[ch] \
		"$(declare -f build_programs)")" build_programs) || die "no programs"
}

# recorded_by: prints the commit that has recorded the baseline, if there is all of the history
recorded_by() {
	local git=(git -C "$KIW_TOP")
	[ "$("${git[@]}" rev-parse --is-shallow-repository 2>/dev/null)" = false ] &&
		"${git[@]}" diff --quiet HEAD -- "$BASELINE" &&
		"${git[@]}" log -1 --format=%H -- "$BASELINE" | grep .
}

export_tree() { git -C "$KIW_TOP" archive "$2" | tar -x -C "$1"; }

# count_older DIR COMMIT: counts the modules of COMMIT, with this kernel, compiler and test bed
count_older() {
	local tree mods
	tree=$(cached count-tree "$(content_key "$2")" export_tree "$2") || return 1
	mods=$(KIW_TREE=$tree "$KIW_VM/build.sh" 6.12) &&
		"$HERE/count.sh" --modules "$mods" --record "$1/baseline.json"
}

# baseline: prints the name of the file to compare with. Without the history, that is one of another
# kernel or compiler, with which count.py does not judge.
baseline() {
	local commit dir
	if [ -n "$EXT" ] || grep -q -F "\"build\": \"$BUILD\"" "$BASELINE" ||
		! commit=$(recorded_by); then
		echo "$BASELINE"
		return
	fi
	note "the baseline is of another kernel or compiler: counting ${commit:0:12} with these"
	dir=$(cached count-baseline "$(content_key "$commit" "$BUILD" "$K_DIR" "$P_DIR")" \
		count_older "$commit") && echo "$dir/baseline.json"
}

# boot: starts QEMU with one CPU, whose clock advances with each instruction (-icount). Fails if the
# guest did not finish, for whatever reason. It is not booted again.
boot() {
	local guest status
	JOB=$W/job
	mkdir "$JOB"
	cp "$P_DIR/bench" "$HERE/count/guest.sh" "$JOB"
	G_JOB=$JOB
	guest_dir guest ""
	guest_command guest bash /host/job/guest.sh
	KIW_ACCEL=tcg,thread=single guest_start guest -icount shift=0,sleep=off -rtc clock=vm \
		-plugin "$P_DIR/plugin.so,out=$W/counts"
	guest=$GUEST_PID
	wait "$guest"
	status=$(guest_verdict guest $?)
	[ "$status" != 0 ] || return 0
	tail -n 20 "$W/guest/out/stdout"
	cat "$W/guest/console" "$W/guest/out/dmesg" 2>/dev/null |
		grep -a -m 5 -E 'cut here|BUG:|Oops|Kernel panic|general protection'
	echo "count: FAIL the guest ended with $status: $(tail -n 1 "$W/guest/out/stdout")"
	return 1
}

main() {
	local bad=0 with
	options "$@"
	[ -z "$RECORD" ] || [ -z "$EXT" ] || die "the baseline is that of kiwarp"
	build_all
	with=${RECORD:-$(baseline)} || die "the commit of the baseline cannot be counted"
	trap guest_cleanup EXIT
	trap 'exit 130' INT TERM
	# Many times what it takes, even on a busy machine
	G_KERNEL=6.12 G_TIMEOUT=1200
	[ -z "$EXT" ] || G_ENV+=(KIW_LINK_TYPE=kiwarp-ext)
	guest_prepare
	boot || exit 1
	"$HERE/count.py" ${RECORD:+--renew} ${EXT:+--show} "$W/counts" "$W/guest/out/stdout" \
		"$with" "$BUILD" "$W/totals" || bad=1
	[ -z "$TOTALS" ] || cp "$W/totals" "$TOTALS"
	exit $bad
}

main "$@"
