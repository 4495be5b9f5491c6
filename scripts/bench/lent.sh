#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# lent.sh: counts the instructions that the sender of Writes of 64 KiB without CRC executes, for
# each setting of zero_copy, in one of two guests (QEMU). Their interfaces compute checksums and cut
# segments, as those of hardware do. Needs root, for network interfaces in a namespace of its own.
# See Documentation/performance.rst.

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

main() {
	local modules programs job
	need_packages gcc libc6-dev || die "packages missing"
	modules=$("$KIW_VM/build.sh" 6.12) || die "the build failed"
	programs=$(cached lent-programs "$(content_key "$HERE"/lent/mark.c "$HERE"/count/plugin.c \
		"$HERE"/count/qemu.h "$(declare -f build_programs)")" build_programs) || die "no programs"
	job=$(mktemp -d "${TMPDIR:-/tmp}/kiw.XXXXXX")
	# shellcheck disable=SC2064 # now
	trap "rm -rf '$job'" EXIT
	mkdir "$job/in"
	cp "$programs/mark" "$HERE/lent/guest.sh" "$job/in"
	"$KIW_VM/pair.sh" --kernel 6.12 --mtu 1500 --timeout "${KIW_TIMEOUT:-1500}" --offload \
		--plugin "$programs/plugin.so" --modules "$modules" --job "$job/in" --out "$job/out" \
		-- bash /host/job/guest.sh || { tail -n 30 "$job/out/a/stdout"; exit 1; }
	"$HERE/lent.py" "$job/out/a/counts" "$job/out/a/stdout"
}

main "$@"
