#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# kernels.sh [--list] [--out DIR] [REGEX...]: builds the modules for the kernels of Debian's releases
# (kernels.list) on amd64, arm64 and s390x (big endian), with W=1 and sparse, and prints a table.
# REGEX: only rows "RELEASE MACHINE" that match one, such as 's390x' or '^7'. --list: only the
# rows. --out DIR: keeps the logs there.
#
# Compilers and headers are in the cache (debian.sh). Fails if a build fails or says anything, or if a
# kernel that must be refused is not.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"
# shellcheck source=scripts/vm/debian.sh
. "$KIW_VM/debian.sh"

MACHINES=(amd64 arm64 s390x)
WORK=
OUT=
FAILED=0

# Of a machine: flavours of its kernels
flavours_of() {
	case $1 in
	amd64) echo amd64 cloud-amd64 rt-amd64 ;;
	arm64) echo arm64 arm64-16k ;;
	s390x) echo s390x ;;
	esac
}

# refusal RELEASE: prints the expected message if the kernel must be refused
refusal() {
	case $1 in *-rt-*) echo PREEMPT_RT ;; esac
}

# --- kernels ---------------------------------------------------------------------------

# list_rows: prints lines "RELEASE MACHINE DEBIAN" for all kernels that are available
list_rows() {
	local debian machine flavour conf package
	while read -r debian _; do
		case $debian in '' | '#'*) continue ;; esac
		for machine in "${MACHINES[@]}"; do
			conf=$(apt_of "$debian" "$machine")
			# An archive that cannot be reached now is left out, which the rows show.
			APT_CONFIG=$conf apt-get -qq update >"$WORK/apt.log" 2>&1 ||
				sed -n 's/^E: Failed/Failed/p' "$WORK/apt.log" >&2
			APT_CONFIG=$conf apt-cache pkgnames linux-headers- >"$WORK/names" || continue
			for flavour in $(flavours_of "$machine"); do
				newest "$flavour" <"$WORK/names" | while read -r package; do
					echo "${package#linux-headers-} $machine $debian"
				done
			done
		done
	done <"$KIW_DEBIANS"
}

# --- builds ---------------------------------------------------------------------------

# copy_sources DIR
copy_sources() {
	mkdir -p "$1"
	make -s -C "$KIW_TOP" install-dkms "DESTDIR=$1/dkms" >/dev/null &&
		mv "$1"/dkms/usr/src/kiwarp-* "$1/module" &&
		cp -r "$KIW_TOP/ktest" "$KIW_TOP/kunit" "$1/module" &&
		find "$1/module" \( -name '*.o' -o -name '*.ko' -o -name '*.mod*' -o -name '.*.cmd' \) -delete
}

# build HEADERS TREE RELEASE MACHINE MODULE [ARGUMENT...]: without type information for BPF, which
# would need one more tool and says nothing about our sources
build() {
	local headers=$1 tree=$2 release=$3 arch prefix module=$5
	arch=$(arch_of "$4")
	prefix=$(prefix_of "$4")
	shift 5
	in_tools "$tree" "$headers" "$module" make -s -k -j "$(build_jobs)" \
		-C "/mnt/headers/usr/src/linux-headers-$release" "ARCH=$arch" \
		"CROSS_COMPILE=$prefix" "CC=${prefix}gcc" M=/mnt/module CONFIG_DEBUG_INFO_BTF_MODULES= W=1 "$@"
}

# Remarks of the kernel's build system about its own tree, and of sparse about the kernel
noise='the compiler differs|pahole version differs|Skipping BTF generation|/mnt/headers/'

# count PATTERN LOG: lines about our sources
count() { grep -E "$1" "$2" | grep -vcE "$noise"; }

# row RELEASE MACHINE DEBIAN
row() {
	local dir=$WORK/$1.$2 log=$OUT/$1.$2.log what=$1 headers tree rc=0 refused said warnings
	printf '%-28s %-6s %-9s ' "$1" "$2" "$3"
	if ! headers=$(headers "$@") || ! tree=$(tools "$3")/tree || ! copy_sources "$dir"; then
		echo "no headers or no compiler"
		return 1
	fi
	refused=$(refusal "$what")
	build "$headers" "$tree" "$1" "$2" "$dir/module" KBUILD_CHECKSRC=1 CF=-D__CHECK_ENDIAN__ modules \
		>"$log" 2>&1 || rc=$?
	if [ "$rc" = 0 ]; then
		# No kernel of Debian has KUnit. So the suites are only compiled.
		build "$headers" "$tree" "$1" "$2" "$dir/module" CONFIG_KUNIT=m KBUILD_CHECKSRC=1 \
			KCFLAGS=-DCONFIG_KUNIT_MODULE kunit/kiwarp_kunit.o >>"$log" 2>&1 || rc=$?
	fi
	rm -rf "$dir"
	said=$(sed -n 's/^.*\*\*\* kiwarp cannot be built for Linux [^:]*: \(.*\)\. See .*/\1/p' "$log" |
		head -n 1)
	if [ -n "$said" ]; then
		echo "refused: $said"
		[ -n "$refused" ] && [[ $said == *$refused* ]]
		return
	fi
	warnings=$(count '(warning|error): ' "$log")
	if [ "$rc" = 0 ]; then echo -n "builds"; else echo -n "FAILS"; fi
	echo ", $warnings remarks"
	[ "$rc" = 0 ] && [ "$warnings" = 0 ] && [ -z "$refused" ]
}

# selected ROW REGEX...: one of them matches, or there is none
selected() {
	local line=$1 regex
	shift
	[ $# -gt 0 ] || return 0
	for regex in "$@"; do
		! [[ $line =~ $regex ]] || return 0
	done
	return 1
}

main() {
	local list=false line
	local -a rows only=()
	while [ $# -gt 0 ]; do
		case $1 in
		--list) list=true ;;
		--out) OUT=${2:?--out needs a directory}; shift ;;
		-*) die "usage: kernels.sh [--list] [--out DIR] [REGEX...]" ;;
		*) only+=("$1") ;;
		esac
		shift
	done
	need_packages debootstrap debian-archive-keyring || die "packages missing"
	mkdir -p "$KIW_CACHE"
	WORK=$(mktemp -d "$KIW_CACHE/tmp.XXXXXX")
	trap 'as_root rm -rf "$WORK"' EXIT
	OUT=${OUT:-$WORK}
	mkdir -p "$OUT"
	mapfile -t rows < <(list_rows)
	[ "${#rows[@]}" -gt 0 ] || die "apt knows no kernels"
	for line in "${rows[@]}"; do
		selected "${line% *}" ${only[@]+"${only[@]}"} || continue
		if $list; then
			echo "$line"
			continue
		fi
		# shellcheck disable=SC2086 # words
		row $line || FAILED=$((FAILED + 1))
	done
	$list || echo "$FAILED of these are not as they should be"
	[ "$FAILED" = 0 ]
}

main "$@"
