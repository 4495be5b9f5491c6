# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Shared by the scripts on the host side of the test bed: cache, content keys, locks,
# packages. To be sourced; it only defines functions and variables.
# shellcheck disable=SC2034 # variables are for those who source it

KIW_VM=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
KIW_TOP=$(cd "$KIW_VM/../.." && pwd)
KIW_CACHE=${KIWARP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kiwarp}

# Debian's Python has the modules that deps.sh installs. One that a version manager puts in front of
# it lacks them, and takes ten times as long to start.
case $(command -v python3) in
/usr/bin/python3) ;;
*) [ ! -x /usr/bin/python3 ] || PATH=/usr/bin:$PATH ;;
esac

note() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
	note "$*"
	exit 1
}

# as_root CMD...: runs CMD as root, with sudo if necessary.
as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# build_jobs: how many compilers to run. If there are more than two cores,
# one is left for other work on the machine.
build_jobs() {
	local n
	n=$(nproc)
	echo $((n > 2 ? n - 1 : n))
}

# content_key ITEM...: 16 hex digits over the items; an item that names a file
# counts with its content, any other with its text.
content_key() {
	local item
	for item in "$@"; do
		if [ -f "$item" ]; then cat "$item"; else printf '%s\n' "$item"; fi
	done | sha256sum | cut -c1-16
}

# run_logged LOG CMD...: quiet unless it fails.
run_logged() {
	local log=$1
	shift
	if ! "$@" >>"$log" 2>&1; then
		note "failed: $*"
		grep -A4 -E ' (fatal )?error: |^E: |ERROR:|No rule to make' "$log" |
			head -n 60 >&2 || true
		tail -n 5 "$log" >&2
		return 1
	fi
}

# entries KIND: prints the names of entries, the most recently used first.
entries() {
	find "$KIW_CACHE" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %f\n' 2>/dev/null |
		grep -E " $1-[0-9a-f]{16}\$" | sort -rn | cut -d' ' -f2
}

# forget NAME MINUTES: removes an entry that is not in use and was not used for so long.
forget() {
	local dir=$KIW_CACHE/$1
	(
		flock -n 8 || exit 0
		[ -n "$(find "$dir" -maxdepth 0 -mmin "+$2" 2>/dev/null)" ] || exit 0
		rm -rf "$dir" "$dir.log"
	) 8>"$KIW_CACHE/locks/$1"
}

# prune KIND: removes entries that were not used for a month; if there are more than 20, those not
# used for half a day; and what a crash left.
prune() {
	local name
	local -a all
	find "$KIW_CACHE" -mindepth 1 -maxdepth 1 -cmin +1440 \
		\( -name 'run.*' -o -name 'tmp.*' -o -name 'lint-*' \) -exec rm -rf {} + 2>/dev/null || true
	mkdir -p "$KIW_CACHE/locks"
	mapfile -t all < <(entries "$1")
	for name in "${all[@]}"; do forget "$name" 43200; done
	for name in "${all[@]:20}"; do forget "$name" 720; done
}

# build_entry DIR BUILDER ARGS...: BUILDER fills a scratch directory, which
# becomes DIR in one rename: a reader sees all of it or nothing. What failed is
# kept, once, to look at.
build_entry() {
	local dir=$1 builder=$2 tmp
	shift 2
	tmp=$(mktemp -d "$KIW_CACHE/tmp.XXXXXX")
	if ! "$builder" "$tmp" "$@"; then
		rm -rf "$KIW_CACHE/failed"
		mv -T "$tmp" "$KIW_CACHE/failed"
		note "left in $KIW_CACHE/failed"
		return 1
	fi
	chmod 755 "$tmp"
	mv -T "$tmp" "$dir"
}

# cached KIND KEY BUILDER ARGS...: prints the directory KIND-KEY in the cache,
# made by `BUILDER TMPDIR ARGS...` when it is not there yet. Concurrent callers
# wait for the first. BUILDER must not rely on errexit: it runs in a condition.
cached() {
	local kind=$1 key=$2 dir=$KIW_CACHE/$1-$2
	shift 2
	mkdir -p "$KIW_CACHE/locks"
	(
		flock -w 3600 9 || die "timeout waiting for the lock of $kind"
		if [ ! -d "$dir" ]; then
			build_entry "$dir" "$@" || exit 1
			prune "$kind"
		fi
		touch "$dir"
	) 9>"$KIW_CACHE/locks/$kind-$key" >&2 || return 1
	echo "$dir"
}

# built_with KERNEL_DIR: prints what objects depend on besides their sources.
built_with() { gcc --version | head -n 1; echo "$1"; }

# copy_build FROM TO: copies a build with the times of its files, and adapts the paths that kbuild
# has recorded.
copy_build() {
	rm -rf "$2" "$2.new"
	cp -a "$1" "$2.new" &&
		find "$2.new" -type f \( -name '*.cmd' -o -name '*.mod' -o -name modules.order -o \
			-name Module.symvers \) -exec sed -i "s|$1/|$2/|g" {} + &&
		mv -T "$2.new" "$2"
}

# seed_build DIR KERNEL_DIR KIND: if DIR does not exist, makes it from the newest build of that KIND
# against the same kernel, of any tree. Times are kept and paths are adapted to DIR, so files that
# are the same in the new tree are not compiled again.
seed_build() {
	local dir=$1 from
	[ ! -d "$dir" ] || return 0
	for from in $(entries "$3"); do
		[ "$(cat "$KIW_CACHE/$from/.built-with" 2>/dev/null)" = "$(built_with "$2")" ] || continue
		(
			flock -n 8 && copy_build "$KIW_CACHE/$from" "$dir"
		) 8>"$KIW_CACHE/locks/$from" && return
	done
	mkdir -p "$dir"
	built_with "$2" >"$dir/.built-with"
}

missing_packages() {
	local p
	for p in "$@"; do
		dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null |
			grep -qx installed || echo "$p"
	done
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		install --no-install-recommends "$@" >&2
}

# apt_update: at most once in ten minutes, for all callers together.
apt_update() {
	local stamp=$KIW_CACHE/apt-updated
	mkdir -p "$KIW_CACHE"
	[ -n "$(find "$stamp" -mmin -10 2>/dev/null)" ] && return 0
	as_root apt-get -qq -o DPkg::Lock::Timeout=300 update >&2 && touch "$stamp"
}

# need_packages NAME...: installed when this returns 0.
need_packages() {
	local missing
	mapfile -t missing < <(missing_packages "$@")
	[ "${#missing[@]}" = 0 ] && return 0
	note "installing ${missing[*]}"
	mkdir -p "$KIW_CACHE"
	(
		flock -w 1200 9 || die "timeout waiting for another installation"
		apt_update
		apt_install "${missing[@]}"
	) 9>"$KIW_CACHE/apt.lock"
}

# apt_state: what the answers of apt depend on, this machine's or that of APT_CONFIG (debian.sh)
apt_state() {
	local conf=${APT_CONFIG:-}
	if [ -n "$conf" ]; then
		cat "$conf" "${conf%/*}/sources.list"
		stat -c '%n %y' "${conf%/*}/lists"
	else
		stat -c '%n %y' /etc/apt /etc/apt/*.d /etc/apt/sources.list* /var/lib/apt/lists \
			/var/lib/dpkg/status 2>/dev/null
	fi
}

# apt_says PROGRAM ARG...: what apt-cache or apt-get answers. It reads all package lists each time,
# which takes seconds, so answers are kept until the lists change.
apt_says() {
	local dir=$KIW_CACHE/apt-says file new
	file=$dir/$(content_key "$(apt_state)" "$*")
	if [ ! -s "$file" ]; then
		mkdir -p "$dir"
		find "$dir" -type f -mtime +7 -delete
		new=$(mktemp "$dir/tmp.XXXXXX")
		"$@" >"$new" || { rm -f "$new"; return 1; }
		mv -f "$new" "$file"
	fi
	cat "$file"
}

# package_version NAME: of the candidate in the configured sources.
package_version() {
	apt_says apt-cache policy "$1" | awk '$1 == "Candidate:" { print $2 }'
}
