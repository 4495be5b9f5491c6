#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# build.sh NAME: builds the modules of this tree against kernel NAME and prints the directory
# that holds them: those of the driver and of the tests, and the suites if the kernel has KUnit.
# It builds in a copy in the cache, so that builds for several kernels can run at once and the
# tree stays clean. Only changed files are compiled again; in a new tree, those that differ from
# the tree that was built last. For uml-gcov the directory also has gcno/, the compiler's notes,
# which the counts of the same modules can be read with. For kernels with KASAN, variables that the
# code does not initialize begin with a pattern: all kernels here would set them to zero, which
# hides that they are used, and others do not. Kernels of other releases of Debian, or for other
# machines, are built for with the compilers of that release (debian.sh).
#
# In the environment: KIW_COVER=1: the modules tell which of their code runs (ktest/cover.c).
# KIW_TREE=DIR: builds the modules of that tree.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/vm/guest.sh
. "$KIW_VM/guest.sh"
# shellcheck source=scripts/vm/debian.sh
. "$KIW_VM/debian.sh"

# rsync without -t, so that a file gets a new time exactly when its contents change
copy_tree() {
	[ -e "$KIW_TOP/Kbuild" ] || die "no Kbuild in $KIW_TOP"
	mkdir -p "$1"
	rsync -rlpc --delete --exclude=/.* --exclude=/scripts \
		--exclude=/Documentation --exclude='*.o' --exclude='*.ko' --exclude='*.mod' \
		--exclude='*.mod.c' --exclude='.*.cmd' --exclude='.*.d' --exclude='*.gcno' \
		--exclude=Module.symvers --exclude=modules.order "$KIW_TOP/" "$1"
}

# compile_in CLONE: with the compilers of K_DEBIAN
compile_in() {
	local tree headers=$K_DIR/headers prefix
	tree=$(tools "$K_DEBIAN")/tree && prefix=$(prefix_of "$K_MACHINE") || return 1
	# Without type information for BPF, which would need one more tool
	run_logged "$1.log" in_tools "$tree" "$headers" "$1" make -s -j "$(build_jobs)" \
		-C "/mnt/headers/${K_BUILD#"$headers/"}" "ARCH=$K_ARCH" "CROSS_COMPILE=$prefix" \
		"CC=${prefix}gcc" M=/mnt/module CONFIG_DEBUG_INFO_BTF_MODULES= modules || return 1
}

compile() {
	: >"$1.log"
	if [ -n "${K_DEBIAN:-}" ]; then
		compile_in "$1"
		return
	fi
	# W=1 as in lint/kernels.sh: what was compiled there is not compiled again.
	run_logged "$1.log" make -C "$K_BUILD" "M=$1" "ARCH=$K_ARCH" W=1 \
		-j"$(build_jobs)" ${GCOV:+GCOV_PROFILE=y} ${KIW_COVER:+KIWARP_COVER=y} \
		${PATTERN:+"KCFLAGS=-ftrivial-auto-var-init=pattern"} modules || return 1
	grep -A5 -E 'warning:' "$1.log" >&2
	# Another build must not begin with this one, or lint would not see the warning.
	! grep 'warning:' "$1.log" | grep -qv 'the compiler differs' || rm -f "$1/.built-with"
}

# strip_module TO FROM
strip_module() {
	if [ -z "${K_DEBIAN:-}" ]; then
		strip -g -o "$1" "$2"
	else
		cp "$2" "$1" && strip_in "$(tools "$K_DEBIAN")/tree" "${1%/*}" "$(prefix_of "$K_MACHINE")" "$1"
	fi
}

# collect DIR CLONE MODULE...
collect() {
	local dir=$1 clone=$2 m
	shift 2
	for m in "$@"; do
		strip_module "$dir/${m##*/}" "$m" || return 1
	done
	[ -z "$GCOV" ] || rsync -rm --include='*/' --include='*.gcno' --exclude='*' "$clone/" "$dir/gcno"
}

main() {
	local clone GCOV='' PATTERN='' kind
	local -a modules
	# One kernel has two names
	[ "${1:-}" != uml-smp ] || set -- uml-debug
	kind=build-${1:-}${KIW_COVER:+-cover}
	load_kernel "${1:-}"
	KIW_TOP=${KIW_TREE:-$KIW_TOP}
	case $1 in
	*-gcov) GCOV=1 ;;
	*-debug) PATTERN=1 ;;
	esac
	need_packages rsync build-essential dwarves || die "packages missing"
	clone=$KIW_CACHE/$kind-$(content_key "$K_DIR" "$KIW_TOP")
	mkdir -p "$KIW_CACHE/locks"
	exec 9>"$KIW_CACHE/locks/${clone##*/}"
	flock -w 1200 9 || die "timeout waiting for another build"
	prune "$kind"
	seed_build "$clone" "$K_DIR" "$kind"
	copy_tree "$clone" >&2 || die "cannot copy the tree"
	compile "$clone" || die "the build for $1 failed"
	mapfile -t modules < <(find "$clone" -name '*.ko' | sort)
	[ "${#modules[@]}" -gt 0 ] || die "the build for $1 gave no module"
	cached "modules-$1" "$(content_key "${modules[@]}")" \
		collect "$clone" "${modules[@]}"
}

main "$@"
