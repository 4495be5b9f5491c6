#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# lent.sh [--functions N | --test]
# Counts the instructions that the sender of Writes of 64 KiB without CRC executes, for each setting
# of zero_copy, in one of two guests (QEMU). Their interfaces compute checksums and cut segments, as
# those of hardware do. Needs root, for network interfaces in a namespace of its own. --functions:
# also those of N functions. --test: runs 119-zero-copy on these guests instead; in one guest, and
# where interfaces do not compute checksums, the stack copies pages that are lent. See
# Documentation/performance.rst.

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"

build_programs() {
	run_logged "$1/log" gcc -O2 -std=gnu11 -Wall -Wextra -Werror -static -o "$1/mark" \
		"$HERE/lent/mark.c" &&
		run_logged "$1/log" gcc -O2 -std=gnu11 -Wall -Wextra -Werror -shared -fPIC \
			-o "$1/plugin.so" "$HERE/count/plugin.c"
}

# pair OPTIONS... -- CMD...: runs CMD on both guests, with their output in $JOB/out.
pair() {
	"$KIW_VM/pair.sh" --kernel 6.12 --mtu 1500 --offload --modules "$MODULES" --job "$JOB/in" \
		--out "$JOB/out" "$@"
}

count() {
	local programs
	programs=$(cached lent-programs "$(content_key "$HERE"/lent/mark.c "$HERE"/count/plugin.c \
		"$HERE"/count/qemu.h "$(declare -f build_programs)")" build_programs) || die "no programs"
	cp "$programs/mark" "$HERE/lent/guest.sh" "$JOB/in"
	pair --timeout "${KIW_TIMEOUT:-1500}" --plugin "$programs/plugin.so,blocks=on" \
		-- bash /host/job/guest.sh >"$JOB/log" || { tail -n 30 "$JOB/log"; exit 1; }
	"$HERE/lent.py" "$JOB/out/a/counts" "$JOB/out/a/stdout" "$1"
}

run_test() { pair --timeout 1500 -- bash /host/selftests/verbs/119-zero-copy.sh; }

main() {
	local functions=0 run=count
	case ${1-} in
	--functions) functions=${2:?} ;;
	--test) run=run_test ;;
	?*) die "usage: lent.sh [--functions N | --test]" ;;
	esac
	need_packages gcc libc6-dev || die "packages missing"
	MODULES=$("$KIW_VM/build.sh" 6.12) || die "the build failed"
	JOB=$(mktemp -d "${TMPDIR:-/tmp}/kiw.XXXXXX")
	trap 'rm -rf "$JOB"' EXIT
	mkdir "$JOB/in"
	"$run" "$functions"
}

main "$@"
