#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# build.sh prepare KERNEL DIR: builds the modules of this tree against KERNEL in DIR/build, and
# copies that to DIR/saved. Prints the same as compile.
# build.sh compile KERNEL DIR: builds what was changed in DIR/build, and puts the modules into
# DIR/modules. Prints a checksum of the drivers' code.
# build.sh restore KERNEL DIR: undoes the change, without building again.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"
# shellcheck source=scripts/vm/guest.sh
. "$KIW_VM/guest.sh"

# Begin with what build.sh of scripts/vm has compiled from this tree. Running make on it compiles
# nothing, but records the paths of DIR.
prepare() {
	local dir=$1 clone
	"$KIW_VM/build.sh" "$2" >/dev/null || return 1
	clone=$KIW_CACHE/build-$2-$(content_key "$K_DIR" "$KIW_TOP")
	mkdir -p "$dir"
	(
		flock -w 1200 9 && copy_build "$clone" "$dir/build"
	) 9>"$KIW_CACHE/locks/${clone##*/}" || return 1
	compile "$dir" && rm -rf "$dir/saved" && cp -a "$dir/build" "$dir/saved"
}

compile() {
	: >"$1/log"
	make -C "$K_BUILD" "M=$1/build" "ARCH=$K_ARCH" W=1 -j"$(build_jobs)" modules >>"$1/log" 2>&1 ||
		return 1
	rm -rf "$1/modules"
	mkdir "$1/modules"
	find "$1/build" -name '*.ko' -exec sh -c 'strip -g -o "$0/${1##*/}" "$1"' "$1/modules" {} \;
	sum "$1"
}

# sum DIR: prints a checksum of the drivers' code. It is that of the .o files, because a .ko also
# has a version that depends on the text of the sources.
sum() {
	cat "$1"/build/drivers/infiniband/*/*/kiwarp{,_ip}.o | sha256sum | cut -c1-16
}

main() {
	[ $# = 3 ] || die "usage: build.sh prepare|compile|restore KERNEL DIR"
	load_kernel "$2"
	case $1 in
	prepare) prepare "$3" "$2" ;;
	compile) compile "$3" ;;
	restore) rsync -a --delete "$3/saved/" "$3/build" ;;
	*) die "usage: build.sh prepare|compile|restore KERNEL DIR" ;;
	esac
}

main "$@"
