#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [--totals FILE] [--forever] [HARNESS...]
# Builds the harnesses of this directory, the pure parsers of proto/ under libFuzzer with
# the address and undefined-behaviour sanitizers, and runs them for FUZZ_SECONDS (3) each,
# several at a time. Without HARNESS all. Prints a line per harness and the totals;
# status 0 when nothing was found. FILE gets the totals, "passed failed skipped".
#
# --forever runs one harness until it finds something or is interrupted, and keeps its
# corpus in the cache. A finding is left in FUZZ_OUT (fuzz-findings in the cache) as
# HARNESS-crash-..., and shown in base64; BINARY FILE runs it again.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"

FUZZ_SECONDS=${FUZZ_SECONDS:-3}
FUZZ_OUT=${FUZZ_OUT:-$KIW_CACHE/fuzz-findings}
PROTO=$KIW_TOP/drivers/infiniband/sw/kiwarp/proto
TOTALS=
FOREVER=
HARNESSES=()
FLAGS=(-g -O1 -std=gnu2x -Wall -Wextra -Wno-unused-parameter -Werror
	-fno-strict-aliasing -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined
	-Dfuzz_one=LLVMFuzzerTestOneInput "-I$HERE/include" "-I$HERE" "-I${PROTO%/proto}")

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--totals) TOTALS=${2:?}; shift ;;
		--forever) FOREVER=1 ;;
		-*) die "usage: run.sh [--totals FILE] [--forever] [HARNESS...]" ;;
		*) [ -f "$HERE/$1.c" ] || die "no harness $1"; HARNESSES+=("$1") ;;
		esac
		shift
	done
	[ "${#HARNESSES[@]}" -gt 0 ] || mapfile -t HARNESSES < <(all_harnesses)
	[ -z "$FOREVER" ] || [ "${#HARNESSES[@]}" = 1 ] || die "--forever takes one harness"
}

all_harnesses() { find "$HERE" -maxdepth 1 -name '*.c' -printf '%f\n' | sed 's/\.c$//' | sort; }

# vectors: the octets that KUnit has from the RFCs, as a C program that writes each of
# them, with parameters behind it, to a file of its own.
vectors() {
	local -a suites
	# Those of kiwarp_ip have other things in such arrays, and no harness here.
	mapfile -t suites < <(find "$KIW_TOP/kunit" -name '*_kunit.c' ! -name 'kip_*' | sort)
	printf '#include <stdio.h>\n#include "proto/wire.h"\n'
	sed -n '/^#define KIW_TEST_/p' "$KIW_TOP"/kunit/vectors/*.h
	awk '/^static const u8 [a-z0-9_]+\[[^]]*\] = \{$/ { n++; $4 = "v" n "[]"; on = 1 }
	     on { print }
	     /^};/ { on = 0 }
	     END {
		print "static void put(int n, const u8 *v, size_t len)\n{"
		print "char name[32]; FILE *f; int p;"
		print "for (p = 0; p < 4; p++) {"
		print "snprintf(name, sizeof(name), \"seeds/%d-%d\", n, p);"
		print "f = fopen(name, \"w\"); fwrite(v, 1, len, f);"
		print "for (int i = 0; i < 16; i++) fputc(p * 85 >> (i & p), f);"
		print "fclose(f); } }\nint main(void)\n{"
		for (i = 1; i <= n; i++) print "put(" i ", v" i ", sizeof(v" i "));"
		print "return 0; }"
	     }' "${suites[@]}" "$KIW_TOP"/kunit/vectors/*.h
}

# build DIR: the binaries and the seeds.
build() {
	local dir=$1 name objs=()
	: >"$dir/log"
	mkdir "$dir/seeds" "$dir/obj"
	vectors >"$dir/vectors.c"
	run_logged "$dir/log" gcc -w "-I$HERE/include" "-I${PROTO%/proto}" -o "$dir/vectors" \
		"$dir/vectors.c" && (cd "$dir" && ./vectors) || return 1
	for name in "$PROTO"/*.c; do
		objs+=("$dir/obj/$(basename "$name" .c).o")
		run_logged "$dir/log" clang-14 "${FLAGS[@]}" -fsanitize=fuzzer-no-link -c \
			-o "${objs[-1]}" "$name" || return 1
	done
	for name in $(all_harnesses); do
		run_logged "$dir/log" clang-14 "${FLAGS[@]}" -fsanitize=fuzzer -o "$dir/$name" \
			"$HERE/$name.c" "${objs[@]}" || return 1
	done
}

# fuzz HARNESS: runs it for its time; the log is $WORK/HARNESS.log.
fuzz() {
	local name=$1 corpus=$WORK/$1
	local -a bound=(-max_total_time="$FUZZ_SECONDS" -seed=1)
	if [ -n "$FOREVER" ]; then
		corpus=$KIW_CACHE/fuzz-corpus/$name
		bound=()
	fi
	mkdir -p "$corpus" "$FUZZ_OUT"
	"$BUILD/$name" "${bound[@]}" -max_len=2048 -timeout=60 -rss_limit_mb=1024 \
		-print_final_stats=1 -artifact_prefix="$FUZZ_OUT/$name-" "$corpus" "$BUILD/seeds"
}

# verdict HARNESS STATUS
verdict() {
	local log=$WORK/$1.log runs file
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	if [ "$2" = 0 ] && [ "${runs:-0}" -gt 100 ]; then
		printf 'fuzz  %-10s ok    %9s inputs\n' "$1" "$runs"
		return 0
	fi
	printf 'fuzz  %-10s FAIL  status %s\n' "$1" "$2"
	grep -E -A 25 'not so:|ERROR: |runtime error' "$log" | head -n 40 | sed 's/^/  | /'
	file=$(sed -n 's/.*Test unit written to //p' "$log")
	[ -z "$file" ] || { echo "  | $file:"; base64 -w 100 "$file" | head -n 40 | sed 's/^/  | /'; }
	return 1
}

# run_all: counts into PASSED and FAILED.
run_all() {
	local name jobs running=0
	jobs=$((($(nproc) + 1) / 2))
	for name in "${HARNESSES[@]}"; do
		if [ $running -ge $jobs ]; then wait -n; running=$((running - 1)); fi
		{ fuzz "$name" >"$WORK/$name.log" 2>&1; echo $? >"$WORK/$name.status"; } &
		running=$((running + 1))
	done
	wait
	for name in "${HARNESSES[@]}"; do
		if verdict "$name" "$(cat "$WORK/$name.status")"; then
			PASSED=$((PASSED + 1))
		else
			FAILED=$((FAILED + 1))
		fi
	done
}

main() {
	PASSED=0
	FAILED=0
	options "$@"
	need_packages clang-14 libclang-rt-14-dev gcc libc6-dev || die "packages missing"
	BUILD=$(cached fuzz "$(content_key "$HERE"/*.c "$HERE"/*.h "$HERE/run.sh" "$HERE"/include/*/*.h \
		"$PROTO"/*.[ch] "$KIW_TOP"/kunit/*.c "$KIW_TOP"/kunit/vectors/*.h)" build) ||
		die "the build failed"
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/kiwarp-fuzz.XXXXXX")
	trap 'rm -rf "$WORK"' EXIT
	if [ -n "$FOREVER" ]; then fuzz "${HARNESSES[0]}"; exit; fi
	run_all
	[ -z "$TOTALS" ] || echo "$PASSED $FAILED 0" >"$TOTALS"
	echo "fuzz: $PASSED passed, $FAILED failed, 0 skipped"
	[ "$FAILED" = 0 ]
}

main "$@"
