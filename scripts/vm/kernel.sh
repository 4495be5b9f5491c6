#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# kernel.sh NAME: prints the directory of a kernel to test on, and builds it if it
# is not in the cache. NAME is one of
#   uml        own 6.12 User Mode Linux kernel with KUnit
#   uml-debug  the newest kernel that Debian 13 has, likewise, with KASAN, lockdep, kmemleak, fault
#              injection, preemption
#   uml-smp    another name of uml-debug, for guests with several CPUs
#   uml-kcsan  the same with KCSAN instead of KASAN and lockdep
#   uml-gcov   uml with gcov, kmemleak, fault injection
#   smp-debug  own 6.12 kernel for QEMU with KASAN, lockdep, preemption
#   6.1, 6.12  the distribution's stock kernels, for QEMU
#   newest     the newest stock kernel that kiwarp knows, of any stable Debian, likewise
#   7.3, 6.1-arm64, 6.12-s390x: a line of kernels that some release of Debian has, and a machine
#              (amd64 unless given), with the compilers of that release
# The directory holds
#   kernel         the kernel image to boot
#   modules.sqfs   /usr/lib/modules of the guest
#   modules/       the same as a tree, for depmod
#   boot-modules   modules that the initrd loads, in order (stock kernels)
#   info           shell variables: K_TYPE, K_RELEASE, K_BUILD, K_ARCH; of uml-debug and uml-kcsan
#                  also K_ARGS, of the last two kinds K_MACHINE, K_DEBIAN

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# check_config FRAGMENT CONFIG: every line asked for took effect.
check_config() {
	local line bad=0
	while IFS= read -r line; do
		case $line in
		CONFIG_*=n) grep -q "^${line%=n}=" "$2" || continue ;;
		CONFIG_*=*) ! grep -qxF "$line" "$2" || continue ;;
		*) continue ;;
		esac
		note "not in effect: $line"
		bad=1
	done <"$1"
	return $bad
}

# build_newest DIR ...: the same of the newest kernel. Its Makefile names its folder, which will be
# another one. Several CPUs need processes that are stopped by a seccomp filter, not by ptrace.
build_newest() {
	# shellcheck disable=SC2016 # for make
	local here='$(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))'
	build_own "$@" || return 1
	sed -i "s|^export KBUILD_OUTPUT = .*|export KBUILD_OUTPUT := $here|" "$1/build/Makefile"
	echo "K_ARGS=seccomp=on" >>"$1/info"
}

# Removes what is not needed to build a module against the tree.
trim_build() {
	find "$1" \( -name '*.o' -o -name '*.a' -o -name '*.ko' -o -name '*.mod*' \
		-o -name '.*.cmd' \) ! -path "$1/scripts/*" ! -name module.lds \
		! -name Module.symvers -type f -delete
	rm -f "$1"/linux "$1"/vmlinux* "$1"/.vmlinux* "$1"/System.map
}

pack_modules() {
	depmod -b "$1/modules/usr" "$2" &&
		mksquashfs "$1/modules" "$1/modules.sqfs" -comp lz4 \
			-all-root -noappend -quiet -no-progress >/dev/null
}

own_make() {
	make -C "$SRC" ARCH="$ARCH" O="$BUILD" "$@"
}

# join_fragments FRAGMENT...: joins fragments; of several lines for a symbol, the last one counts.
join_fragments() {
	awk -F= '/^CONFIG_/ { line[$1] = $0 } END { for (s in line) print line[s] }' "$@" | sort
}

# build_own DIR TYPE ARCH IMAGE FRAGMENT...: for guests of TYPE; IMAGE is what they boot.
build_own() {
	local dir=$1 type=$2 image=$4 log=$1/log
	BUILD=$dir/build ARCH=$3
	shift 4
	mkdir -p "$BUILD" "$dir/modules/usr"
	join_fragments "$@" >"$dir/fragment"
	run_logged "$log" own_make KCONFIG_ALLCONFIG="$dir/fragment" alldefconfig &&
		check_config "$dir/fragment" "$BUILD/.config" &&
		run_logged "$log" own_make -j"$(build_jobs)" "$image" modules &&
		run_logged "$log" own_make INSTALL_MOD_PATH="$dir/modules/usr" \
			INSTALL_MOD_STRIP=1 modules_install || return 1
	K_RELEASE=$(cat "$BUILD/include/config/kernel.release")
	rm -f "$dir/modules/usr/lib/modules/$K_RELEASE"/{build,source}
	strip -o "$dir/kernel" "$BUILD/$image"
	trim_build "$BUILD"
	pack_modules "$dir" "$K_RELEASE" || return 1
	printf 'K_TYPE=%s\nK_RELEASE=%s\nK_BUILD=build\nK_ARCH=%s\n' \
		"$type" "$K_RELEASE" "$ARCH" >"$dir/info"
}

# kernel_own NAME TYPE ARCH IMAGE FRAGMENT...: of the source SOURCE, or 6.12
kernel_own() {
	local name=$1
	shift
	need_packages build-essential bc bison flex libelf-dev libssl-dev kmod squashfs-tools ||
		die "packages missing"
	SRC=$("$KIW_VM/source.sh" "${SOURCE:-6.12}") || die "no source tree"
	cached "kernel-$name" "$(content_key "$SRC" "$@" "$(declare -f own_make \
		join_fragments check_config build_own trim_build pack_modules)" \
		${BUILDER:+"$(declare -f "$BUILDER")"})" "${BUILDER:-build_own}" "$@"
}

main() {
	case ${1:-} in
	uml) kernel_own "$1" uml um linux "$KIW_VM/uml.config" ;;
	uml-debug | uml-smp)
		SOURCE=newest BUILDER=build_newest kernel_own uml-debug uml um linux "$KIW_VM/uml.config" \
			"$KIW_VM/uml-debug.config" "$KIW_VM/uml-smp.config"
		;;
	uml-kcsan)
		SOURCE=newest BUILDER=build_newest kernel_own "$1" uml um linux "$KIW_VM/uml.config" \
			"$KIW_VM/uml-debug.config" "$KIW_VM/uml-smp.config" "$KIW_VM/uml-kcsan.config"
		;;
	uml-gcov)
		kernel_own "$1" uml um linux "$KIW_VM/uml.config" "$KIW_VM/uml-gcov.config"
		;;
	smp-debug)
		kernel_own "$1" qemu x86_64 vmlinux "$KIW_VM/uml.config" \
			"$KIW_VM/uml-debug.config" "$KIW_VM/smp-debug.config"
		;;
	6.1 | 6.12)
		# shellcheck source=scripts/vm/stock.sh
		. "$KIW_VM/stock.sh" && kernel_stock "$1"
		;;
	newest | [67].[0-9]* | *-arm64 | *-s390x)
		# shellcheck source=scripts/vm/debian.sh
		. "$KIW_VM/debian.sh"
		# shellcheck source=scripts/vm/stock.sh
		. "$KIW_VM/stock.sh" && kernel_debian "$1"
		;;
	*) die "usage: kernel.sh uml|uml-debug|uml-smp|uml-kcsan|uml-gcov|smp-debug|6.1|6.12|newest|LINE[-MACHINE]" ;;
	esac
}

main "$@"
