#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# apart.sh [--digests] [--set NAME=VALUE]... [--functions N] [--out DIR] [STACK...]
# Counts the instructions that the kernels of a server and of its client execute, each in a guest of
# its own (QEMU), when fio reads and writes over NFS, NVMe and iSCSI: over TCP, and over kiwarp,
# with iSER. STACK is nfs, nvme or iscsi; default: all. The guests' interfaces compute checksums and
# cut segments, as those of hardware do. Needs root, for network interfaces in a namespace of its
# own. --digests: with CRC, and digests over TCP. --set: sets a parameter of the module, at both
# ends. --functions: also the counts of the N functions that execute most, in each row. --out: keeps
# what was counted in DIR. See Documentation/performance.rst.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"

DIGESTS=n
FUNCTIONS=0
OUT=
SETTINGS=
STACKS=()
JOB=

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--digests) DIGESTS=y ;;
		--set) SETTINGS+=" ${2:?}"; shift ;;
		--functions) FUNCTIONS=${2:?}; shift ;;
		--out) OUT=${2:?}; shift ;;
		nfs | nvme | iscsi) STACKS+=("$1") ;;
		*) die "usage: apart.sh [--digests] [--set NAME=VALUE]... [--functions N]
	[--out DIR] [nfs|nvme|iscsi]..." ;;
		esac
		shift
	done
	[ "${#STACKS[@]}" -gt 0 ] || STACKS=(nfs nvme iscsi)
}

build_programs() {
	run_logged "$1/log" gcc -O2 -std=gnu11 -Wall -Wextra -Werror -static -o "$1/mark" \
		"$HERE/apart/mark.c" &&
		run_logged "$1/log" gcc -O2 -std=gnu11 -Wall -Wextra -Werror -shared -fPIC \
			-o "$1/plugin.so" "$HERE/count/plugin.c"
}

main() {
	local programs modules plugin
	options "$@"
	need_packages gcc libc6-dev || die "packages missing"
	modules=$("$KIW_VM/build.sh" 6.12) || die "the build failed"
	programs=$(cached apart-programs "$(content_key "$HERE"/apart/mark.c \
		"$HERE"/count/plugin.c "$HERE"/count/qemu.h "$(declare -f build_programs)")" \
		build_programs) || die "no programs"
	JOB=$(mktemp -d "${TMPDIR:-/tmp}/kiw.XXXXXX")
	trap 'rm -rf "$JOB"' EXIT
	[ -n "$OUT" ] || OUT=$JOB/out
	mkdir -p "$JOB/in" "$OUT"
	cp "$programs/mark" "$HERE/apart/guest.sh" "$HERE/apart/windows.py" "$HERE/fio.py" \
		"$HERE/stacks.sh" "$JOB/in"
	plugin=$programs/plugin.so,blocks=on
	"$KIW_VM/pair.sh" --kernel 6.12 --mtu 1500 --offload --modules "$modules" --job "$JOB/in" \
		--out "$OUT" --timeout "${KIW_TIMEOUT:-3600}" \
		--plugin "$plugin" --plugin-b "$plugin" \
		--env "KIW_WINDOW_MS=${KIW_WINDOW_MS:-1000}" --env "KIW_SETTINGS=$SETTINGS" \
		-- bash /host/job/guest.sh "$DIGESTS" "${STACKS[@]}" >"$JOB/log" ||
		{ tail -n 30 "$JOB/log"; exit 1; }
	"$HERE/apart.py" "$OUT" "$FUNCTIONS"
}

main "$@"
