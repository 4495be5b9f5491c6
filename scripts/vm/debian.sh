# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Packages, compilers and emulators of Debian's releases. A release has its own compilers, in a
# directory of the cache; packages are unpacked into the cache. Nothing is installed on this machine.
# Source after lib.sh.

KIW_DEBIANS=$KIW_TOP/scripts/release/kernels.list
KIW_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# Of a machine: ARCH of the kernel's make, the prefix of its compiler
arch_of() { case $1 in amd64) echo x86 ;; arm64) echo arm64 ;; s390x) echo s390 ;; esac; }
prefix_of() {
	case $1 in
	amd64) echo x86_64-linux-gnu- ;;
	arm64) echo aarch64-linux-gnu- ;;
	s390x) echo s390x-linux-gnu- ;;
	esac
}

# --- packages -------------------------------------------------------------------------

# archive SUITE: where this machine's apt gets it from. A mirror has all suites.
archive() {
	local host=bookworm
	case $1 in *-security) host=bookworm-security ;; esac
	apt_says apt-get indextargets --format "\$(CODENAME) \$(COMPONENT) \$(REPO_URI)" \
		"Created-By: Packages" |
		awk -v "host=$host" '$1 == host && $2 == "main" { print $3; exit }'
}

# apt_of RELEASE MACHINE: prints the configuration of an apt that knows the archives of RELEASE
# for MACHINE only, and nothing of this machine.
apt_of() {
	local dir=$KIW_CACHE/apt-$1-$2 suite url
	mkdir -p "$dir"/{lists/partial,archives/partial}
	awk -v "release=$1" '$1 == release { for (i = 2; i <= NF; i++) print $i }' "$KIW_DEBIANS" |
		while read -r suite; do
			url=$(archive "$suite")
			[ -z "$url" ] || echo "deb [signed-by=$KIW_KEYRING] $url $suite main"
		done | replaces "$dir/sources.list"
	replaces "$dir/status" </dev/null
	replaces "$dir/apt.conf" <<-END
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

# replaces FILE: with what comes from stdin, at once: an apt of another process may be reading it.
replaces() {
	local new
	new=$(mktemp "$1.XXXXXX") && cat >"$new" && chmod 644 "$new" && mv -f "$new" "$1"
}

# newest FLAVOUR: of the names of header packages, the newest of each line
newest() {
	sed -n "s/^linux-headers-\([0-9]*\.[0-9]*\)\([^ ]*[0-9]\|[^ ]*+deb[0-9.]*\)\{0,1\}-$1\$/\1 &/p" |
		sort -V | awk '{ last[$1] = $2 } END { for (line in last) print last[line] }' | sort -V
}

# newest_release CONF LINE FLAVOUR: such as 6.1.0-50-amd64; fails if there is none
newest_release() {
	APT_CONFIG=$1 apt_says apt-cache pkgnames "linux-headers-$2" | newest "$3" |
		sed -n "s/^linux-headers-\(${2//./\\.}[^0-9].*\)/\1/p" | tail -n 1 | grep .
}

# fresh_lists CONF: those of apt_of, at most once a day; not again for ten minutes if that fails
fresh_lists() {
	local dir=${1%/*}
	[ -n "$(find "$dir/updated" -mmin -1440 2>/dev/null)" ] && return 0
	[ -z "$(find "$dir/failed" -mmin -10 2>/dev/null)" ] || return 1
	if APT_CONFIG=$1 run_logged "$dir/log" apt-get -qq update; then
		touch "$dir/updated"
	else
		touch "$dir/failed"
		return 1
	fi
}

# depends CONF PACKAGE PATTERN: those of its dependencies that match
depends() {
	APT_CONFIG=$1 apt_says apt-cache depends "$2" | sed -n "s/^ *Depends: \($3\)\$/\1/p"
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
	# The package names its other half, and newer ones themselves, by absolute path.
	# shellcheck disable=SC2016 # for make to expand
	sed -i -e 's|^include /usr/src/|include ../|' \
		-e 's|^KBUILD_OUTPUT=/usr/src/\(.*\)|KBUILD_OUTPUT := $(abspath ../\1)|' \
		"$dir"/usr/src/linux-headers-*/Makefile
}

# headers RELEASE MACHINE DEBIAN: prints the directory that has them
headers() {
	local package=linux-headers-$1 conf host common tools
	conf=$(apt_of "$3" "$2")
	host=$(apt_of "$3" amd64)
	fresh_lists "$host" || return 1
	common=$(depends "$conf" "$package" 'linux-headers-.*')
	tools=$(depends "$conf" "$package" 'linux-kbuild-.*')
	[ -n "$common" ] && [ -n "$tools" ] || return 1
	cached headers "$(content_key "$package" "$2" "$(version_in "$conf" "$package")" \
		"$(version_in "$host" "$tools")" "$(declare -f fetch_headers)")" \
		fetch_headers "$conf" "$host" "$tools" "$package" "$common"
}

# --- compilers ------------------------------------------------------------------------

# make_debian DIR DEBIAN PACKAGES: a tree with these packages, in which no service is started
make_debian() {
	local dir=$1 url
	url=$(archive "$2")
	mkdir -p "$dir/tree/usr/sbin"
	printf '#!/bin/sh\nexit 101\n' >"$dir/tree/usr/sbin/policy-rc.d"
	chmod 755 "$dir/tree/usr/sbin/policy-rc.d"
	run_logged "$dir/log" as_root debootstrap --variant=minbase --components=main "--include=$3" \
		"$2" "$dir/tree" "$url" || return 1
	as_root rm -rf "$dir"/tree/var/{cache,lib}/apt "$dir"/tree/usr/share/{doc,locale,man}
	mkdir -p "$dir"/tree/mnt/{headers,module}
}

tools() {
	local elf=libelf1t64
	[ "$1" != bookworm ] || elf=libelf1
	set -- "$1" "gcc,gcc-aarch64-linux-gnu,gcc-s390x-linux-gnu,libc6-dev,make,sparse,$elf"
	cached compilers "$(content_key "$@" "$(declare -f make_debian)")" make_debian "$@"
}

# emulator_of DEBIAN PACKAGE: prints the directory that has a QEMU and its libraries
emulator_of() {
	need_packages debootstrap debian-archive-keyring || return 1
	cached emulator "$(content_key "$@" "$(declare -f make_debian)")" make_debian "$@"
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


# strip_in TREE MODULE PREFIX FILE...: without debug information, in place; FILE is below MODULE
strip_in() {
	local tree=$1 dir=$2 prefix=$3
	shift 3
	in_tools "$tree" "$dir" "$dir" "${prefix}strip" -g "${@/#$dir/\/mnt\/module}"
}
