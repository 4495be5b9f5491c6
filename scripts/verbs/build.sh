#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# build.sh [MACHINE]: builds the programs of this directory for guests, against the libibverbs,
# librdmacm and libfabric of the machine, which are those of the guests (Debian 12), and prints a
# directory with them. Each NAME.c but common.c is a program NAME, and so is each directory NAME
# of sources. In guests they are in /host/verbs.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"

FLAGS=(-g -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror "-I$KIW_TOP/include/uapi")

build() {
	local dir=$1 program sources
	for program in "$HERE"/*.c "$HERE"/*/; do
		sources=("$program")
		[ ! -d "$program" ] || sources=("$program"*.c)
		program=$(basename "$program" .c)
		[ "$program" != common ] || continue
		run_logged "$dir.log" gcc "${FLAGS[@]}" -o "$dir/$program" "${sources[@]}" \
			"$HERE/common.c" -Wl,--as-needed -lrdmacm -libverbs -lfabric -lpthread ||
			{ cat "$dir.log"; return 1; }
	done
	rm -f "$dir.log"
}

if [ "${1:-amd64}" != amd64 ]; then
	cached verbs "$1" true
	exit
fi
need_packages gcc libc6-dev libibverbs-dev librdmacm-dev libfabric-dev || die "packages missing"
cached verbs "$(content_key "$HERE"/*.[ch] "$HERE"/*/*.[ch] "$HERE/build.sh" \
	"$KIW_TOP/include/uapi/rdma/kiwarp-abi.h" \
	"$(dpkg-query -W -f '${Version}' libibverbs-dev libfabric-dev)")" build
