#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [--quick] [--rounds N] [--ms N] [--rows REGEX] [--cpu N] [--out DIR] [--compare FILE]
#        [--profile] [--smp]
# Measures kiwarp, siw, rxe and TCP in one UML guest that is pinned to one core
# (Documentation/performance.rst), prints a table, and leaves results.json, table.txt and plot.png
# in DIR (bench-out). REGEX is matched against "GROUP: ROW"; --quick selects the rows of 64 KiB and
# of TCP at MTU 1500, and those of CRCs. FILE is the results.json of an earlier run. With --profile,
# perf records on the host, and DIR/profile.txt shows where the time was spent. --smp selects other
# rows, in a guest with two CPUs (QEMU), which compare two flows at once with one of them alone.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"
# shellcheck source=scripts/vm/guest.sh
. "$KIW_VM/guest.sh"

ROUNDS=5
MS=300
ROWS=.
OUT=bench-out
COMPARE=
PROFILE=
SMP=
KERNEL=uml
CPU=$(($(nproc) - 1))
QUICK='^mtu 1500, crc (on|off): .* 64 KiB|^mtu 1500, crc (on|off): tcp|: crc'

usage() { sed -n '4,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--quick) ROWS=$QUICK ROUNDS=3; shift; continue ;;
		--profile) PROFILE=1; shift; continue ;;
		--smp) SMP=1 KERNEL=6.12; shift; continue ;;
		esac
		[ $# -ge 2 ] || usage
		case $1 in
		--rounds) ROUNDS=$2 ;;
		--ms) MS=$2 ;;
		--rows) ROWS=$2 ;;
		--cpu) CPU=$2 ;;
		--out) OUT=$2 ;;
		--compare) COMPARE=$2 ;;
		*) usage ;;
		esac
		shift 2
	done
}

# build_siw DIR: builds siw with module parameters for its options, which are constants in siw.
build_siw() {
	local dir=$1 name
	mkdir -p "$dir/src"
	cp "$SRC"/drivers/infiniband/sw/siw/* "$dir/src"
	for name in mpa_crc_required mpa_crc_strict; do
		sed -i "s/^extern const bool $name;/extern bool $name;/" "$dir/src/siw.h"
		sed -i "s/^const bool $name;/bool $name; module_param($name, bool, 0644);/" \
			"$dir/src/siw_main.c"
		grep -q "module_param($name" "$dir/src/siw_main.c" || return 1
	done
	build_module "$dir" siw CONFIG_RDMA_SIW=m
}

# build_module DIR NAME ARGS...: builds the module in DIR/src.
build_module() {
	local dir=$1 name=$2
	shift 2
	run_logged "$dir/log" make -C "$K_BUILD" "M=$dir/src" "ARCH=$K_ARCH" "$@" modules &&
		strip -g -o "$dir/$name.ko" "$dir/src/$name.ko" && rm -rf "$dir/src"
}

build_crc() {
	mkdir -p "$1/src" && cp "$HERE"/crc32c/* "$1/src" && build_module "$1" crc32c_hw
}

build_program() {
	run_logged "$1/log" gcc -g -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
		-o "$1/bench" "$HERE"/*.c "$KIW_TOP/scripts/verbs/common.c" \
		-lrdmacm -libverbs -lpthread
}

# build_all: builds all modules and programs, sets MODULES, and fills the guest's job directory.
build_all() {
	local dir
	need_packages gcc libc6-dev libibverbs-dev librdmacm-dev util-linux \
		python3-matplotlib || die "packages missing"
	load_kernel "$KERNEL"
	SRC=$("$KIW_VM/source.sh" 6.12) || die "no source tree"
	MODULES=("$("$KIW_VM/build.sh" "$KERNEL")") || die "the build failed"
	MODULES+=("$(cached bench-siw "$(content_key "$K_DIR" "$SRC" \
		"$(declare -f build_siw build_module)")" build_siw)") || die "no siw"
	[ -n "$SMP" ] || MODULES+=("$(cached bench-crc "$(content_key "$K_DIR" "$HERE"/crc32c/* \
		"$(declare -f build_crc build_module)")" build_crc)") || die "no crc32c"
	dir=$(cached bench-program "$(content_key "$HERE"/*.[ch] "$HERE/crc32c/sse.h" \
		"$KIW_TOP"/scripts/verbs/common.[ch] "$(declare -f build_program)")" \
		build_program) || die "no traffic program"
	mkdir -p "$OUT/job"
	cp "$dir/bench" "$HERE/guest.py" "$HERE/instead.sh" "$HERE/stacks.sh" "$HERE/io.py" \
		"$HERE/fio.py" "$OUT/job"
	"$HERE/report.py" plan ${SMP:+--smp} --rounds "$ROUNDS" --ms "$MS" --rows "$ROWS" \
		>"$OUT/job/plan.json" || die "no plan"
}

# boot: starts the guest, which measures what the plan lists.
boot() {
	G_JOB=$OUT/job
	G_MODULES=("${MODULES[@]}")
	G_TIMEOUT=$(("$("$HERE/report.py" seconds "$OUT/job/plan.json")" * 4 + 120))
	if [ -n "$SMP" ]; then boot_smp; else boot_uml; fi
	[ -z "$PROFILE" ] || profile "$GUEST"
	guest_follow guest "$GUEST" | "$HERE/report.py" follow
	wait "$GUEST"
	STATUS=$(guest_verdict guest $?)
	kill "$STAMPS"
}

# boot_uml: starts the UML guest, pinned to a core, with a terminal to stamps.py, which tells the
# guest how much CPU time it has had.
boot_uml() {
	mkfifo "$W/asked" "$W/answered"
	exec 7<>"$W/asked" 8<>"$W/answered"
	G_MEM=3072
	G_ENV=(KIW_STAMPS=/dev/ttyS0 KIW_SLOW=2)
	guest_dir guest ""
	guest_command guest python3 /host/job/guest.py
	taskset -pc "$CPU" $$ >/dev/null || die "no core $CPU"
	guest_start guest ssl0=fd:8,fd:7
	taskset -pc "0-$(($(nproc --all) - 1))" $$ >/dev/null
	# timeout leads a process group to which all processes of the guest belong.
	GUEST=$GUEST_PID
	"$HERE/stamps.py" "$GUEST" "$W/asked" "$W/answered" "$OUT/stamps" &
	STAMPS=$!
}

# boot_smp: starts a guest with two CPUs, which two threads of QEMU emulate, with such a terminal.
boot_smp() {
	mkfifo "$W/host.in" "$W/host.out"
	G_SMP=2
	G_ENV=(KIW_STAMPS=/dev/ttyS1 KIW_SLOW=5)
	guest_dir guest ""
	guest_command guest python3 /host/job/guest.py
	guest_start guest -name guest,debug-threads=on \
		-chardev "pipe,id=host,path=$W/host" -serial chardev:host
	GUEST=$GUEST_PID
	"$HERE/stamps.py" --cpus "$GUEST" "$W/host.out" "$W/host.in" "$OUT/stamps" &
	STAMPS=$!
}

# profile PID: records the guest that is the child of PID, until it ends.
profile() {
	need_packages linux-perf || die "packages missing"
	perf record -q -e cpu-clock -F 1999 -k CLOCK_MONOTONIC -o "$W/perf.data" \
		-p "$(pgrep -P "$1")" >/dev/null 2>&1 &
	PERF=$!
}

profile_end() {
	wait "$PERF"
	cp "$W/guest/out/kallsyms" "$OUT" &&
		perf script -i "$W/perf.data" --ns -F pid,time,ip >"$OUT/samples" 2>/dev/null &&
		"$HERE/profile.py" "$OUT" >"$OUT/profile.txt" &&
		rm "$OUT/samples" "$OUT/kallsyms"
}

main() {
	options "$@"
	mkdir -p "$OUT"
	OUT=$(cd "$OUT" && pwd)
	build_all
	trap guest_cleanup EXIT
	trap 'exit 130' INT TERM
	G_KERNEL=$KERNEL
	guest_prepare
	boot
	cp "$W/guest/out/stdout" "$OUT/lines"
	[ "$STATUS" = 0 ] || { tail -n 20 "$OUT/lines" >&2; exit 1; }
	[ -z "$PROFILE" ] || profile_end || die "no profile"
	"$HERE/report.py" report "$OUT" ${COMPARE:+--compare "$COMPARE"}
}

main "$@"
