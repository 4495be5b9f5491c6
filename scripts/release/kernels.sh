#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# kernels.sh [--list] [--out DIR] [REGEX...]: builds the modules for the kernels of Debian's releases
# (kernels.list) on amd64, arm64 and s390x (big endian), with W=1 and sparse, and prints a table.
# REGEX: only rows "RELEASE MACHINE" that match one, such as 's390x' or '^7'. --list: only the
# rows. --out DIR: keeps the logs there.
#
# Each Debian release has its own compilers, for all machines, in a directory of the cache; header
# packages are unpacked into the cache. Nothing is installed on this machine. Fails if a build
# fails or says anything, or if a kernel that must be refused is not.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

LIST=$KIW_TOP/scripts/release/kernels.list
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
MACHINES=(amd64 arm64 s390x)
WORK=
OUT=
FAILED=0

# For a machine: ARCH for the kernel's make, the prefix of the compiler, the flavours of the kernels
arch_of() { case $1 in amd64) echo x86 ;; arm64) echo arm64 ;; s390x) echo s390 ;; esac; }
prefix_of() {
	case $1 in
	amd64) echo x86_64-linux-gnu- ;;
	arm64) echo aarch64-linux-gnu- ;;
	s390x) echo s390x-linux-gnu- ;;
	esac
}
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

# --- packages -------------------------------------------------------------------------

# archive SUITE: prints the archive from which this machine's apt gets it. A mirror has all suites.
archive() {
	local host=bookworm
	case $1 in *-security) host=bookworm-security ;; esac
	apt-get indextargets --format "\$(CODENAME) \$(COMPONENT) \$(REPO_URI)" \
		"Created-By: Packages" |
		awk -v "host=$host" '$1 == host && $2 == "main" { print $3; exit }'
}

# apt_of RELEASE MACHINE: prints the configuration of an apt that knows the archives of RELEASE
# for MACHINE only, and nothing of this machine.
apt_of() {
	local dir=$KIW_CACHE/apt-$1-$2 suite url
	mkdir -p "$dir"/{lists/partial,archives/partial}
	: >"$dir/status"
	awk -v "release=$1" '$1 == release { for (i = 2; i <= NF; i++) print $i }' "$LIST" |
		while read -r suite; do
			url=$(archive "$suite")
			[ -z "$url" ] || echo "deb [signed-by=$KEYRING] $url $suite main"
		done >"$dir/sources.list"
	cat >"$dir/apt.conf" <<-END
	APT::Architecture "$2";
	APT::Architectures { "$2"; };
	Acquire::Languages "none";
	Dir::Cache "$dir";
	Dir::Etc::sourcelist "$dir/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	Dir::Etc::preferencesparts "/dev/null";
	Dir::State "$dir";
	Dir::State::status "$dir/status";
	END
	echo "$dir/apt.conf"
}

# newest FLAVOUR: selects, of the names of header packages, the newest of each kernel line
newest() {
	sed -n "s/^linux-headers-\([0-9]*\.[0-9]*\)\([^ ]*[0-9]\|[^ ]*+deb[0-9.]*\)\{0,1\}-$1\$/\1 &/p" |
		sort -V | awk '{ last[$1] = $2 } END { for (line in last) print last[line] }' | sort -V
}

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
	done <"$LIST"
}

# depends CONF PACKAGE PATTERN: prints the dependencies of PACKAGE that match
depends() {
	APT_CONFIG=$1 apt-cache depends "$2" | sed -n "s/^ *Depends: \($3\)\$/\1/p"
}

version_in() {
	APT_CONFIG=$1 package_version "$2"
}

# fetch_headers DIR CONF TOOLS PACKAGE...: TOOLS are those of the kernel's build system, which
# are for this machine.
fetch_headers() {
	local dir=$1 conf=$2 host=$3 tools=$4 deb
	shift 4
	mkdir -p "$dir/debs"
	(cd "$dir/debs" && APT_CONFIG=$conf run_logged "$dir/log" apt-get -qq download "$@" &&
		APT_CONFIG=$host run_logged "$dir/log" apt-get -qq download "$tools") || return 1
	for deb in "$dir"/debs/*.deb; do
		dpkg-deb -x "$deb" "$dir" || return 1
	done
	rm -rf "$dir/debs"
	# The package includes its other half by absolute path.
	sed -i 's|^include /usr/src/|include ../|' "$dir"/usr/src/linux-headers-*/Makefile
}

# headers RELEASE MACHINE DEBIAN: prints the directory that has them
headers() {
	local package=linux-headers-$1 conf host common tools
	conf=$(apt_of "$3" "$2")
	host=$(apt_of "$3" amd64)
	common=$(depends "$conf" "$package" 'linux-headers-.*')
	tools=$(depends "$conf" "$package" 'linux-kbuild-.*')
	[ -n "$common" ] && [ -n "$tools" ] || return 1
	cached headers "$(content_key "$package" "$2" "$(version_in "$conf" "$package")" \
		"$(version_in "$host" "$tools")" "$(declare -f fetch_headers)")" \
		fetch_headers "$conf" "$host" "$tools" "$package" "$common"
}

# --- compilers ------------------------------------------------------------------------

# make_tools DIR DEBIAN
make_tools() {
	local dir=$1 url elf=libelf1t64
	[ "$2" != bookworm ] || elf=libelf1
	url=$(archive "$2")
	mkdir -p "$dir/tree/usr/sbin"
	printf '#!/bin/sh\nexit 101\n' >"$dir/tree/usr/sbin/policy-rc.d"
	chmod 755 "$dir/tree/usr/sbin/policy-rc.d"
	run_logged "$dir/log" as_root debootstrap --variant=minbase --components=main \
		--include="gcc,gcc-aarch64-linux-gnu,gcc-s390x-linux-gnu,libc6-dev,make,sparse,$elf" \
		"$2" "$dir/tree" "$url" || return 1
	as_root rm -rf "$dir"/tree/var/{cache,lib}/apt "$dir"/tree/usr/share/{doc,locale,man}
	mkdir -p "$dir"/tree/mnt/{headers,module}
}

tools() {
	cached compilers "$(content_key "$1" "$(declare -f make_tools)")" make_tools "$1"
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

# in_tools TREE HEADERS MODULE CMD...: CMD with the compilers of TREE, and two directories below /mnt
in_tools() {
	# objtool reads its limits in /proc.
	# shellcheck disable=SC2016 # for the inner shell to expand
	as_root unshare -m sh -c 'tree=$1 && mount -t proc proc "$tree/proc" &&
		mount --bind "$2" "$tree/mnt/headers" &&
		mount --bind "$3" "$tree/mnt/module" && shift 3 &&
		exec chroot "$tree" env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$@"' sh "$@"
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
