#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# count.sh [--renew] [--ext] [--totals FILE]
# Counts the instructions that a guest executes per operation, under QEMU with -icount: they
# are the same however busy the machine is. Fails if a count of the module, or of the whole kernel,
# exceeds that in count/baseline.json by more than the tolerance. --renew writes that file. --ext
# counts with devices of the type kiwarp-ext, and shows how much that is more. FILE gets the totals,
# "passed failed skipped". See Documentation/performance.rst.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"
# shellcheck source=scripts/vm/guest.sh
. "$KIW_VM/guest.sh"

RENEW=
EXT=
TOTALS=
JOB=

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--renew) RENEW=1 ;;
		--ext) EXT=1 ;;
		--totals) TOTALS=${2:?}; shift ;;
		*) die "usage: count.sh [--renew | --ext] [--totals FILE]" ;;
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
	G_MODULES=("$("$KIW_VM/build.sh" 6.12)") || die "the build failed"
	P_DIR=$(cached count-programs "$(content_key "$HERE"/*.[ch] "$HERE/crc32c/sse.h" \
		"$HERE"/count/*.[ch] "$KIW_TOP"/scripts/verbs/common.[ch] \
		"$(declare -f build_programs)")" build_programs) || die "no programs"
}

# has_report: does the guest's log have a report of its kernel? Only for a guest that did not finish.
has_report() {
	cat "$W/guest/console" "$W/guest/out/dmesg" 2>/dev/null |
		grep -a -m 1 -E 'cut here|BUG:|Oops|Kernel panic|general protection' >&2
}

# try_boot: boots the guest again if it did not finish. While the guest waits for its disk, its clock
# jumps, and a deadline may pass. A guest whose kernel has reported something is not given another
# try.
try_boot() {
	local try
	for try in 1 2 3; do
		rm -rf "$W/guest" "$W/job"
		boot
		[ "$STATUS" != 0 ] || return 0
		note "try $try: the guest ended with $STATUS"
		! has_report || return 1
	done
	return 1
}

# boot: starts QEMU with one CPU, whose clock advances with each instruction (-icount).
boot() {
	local guest
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
	STATUS=$(guest_verdict guest $?)
	[ "$STATUS" = 0 ] || tail -n 20 "$W/guest/out/stdout"
}

main() {
	local bad=0
	options "$@"
	[ -z "$RENEW" ] || [ -z "$EXT" ] || die "the baseline is that of kiwarp"
	build_all
	trap guest_cleanup EXIT
	trap 'exit 130' INT TERM
	G_KERNEL=6.12 G_TIMEOUT=600
	[ -z "$EXT" ] || G_ENV+=(KIW_LINK_TYPE=kiwarp-ext)
	guest_prepare
	try_boot || exit 1
	"$HERE/count.py" ${RENEW:+--renew} ${EXT:+--show} "$W/counts" "$W/guest/out/stdout" \
		"$HERE/count/baseline.json" "$K_RELEASE, gcc $(gcc -dumpfullversion)" \
		"$W/totals" || bad=1
	[ -z "$TOTALS" ] || cp "$W/totals" "$TOTALS"
	exit $bad
}

main "$@"
