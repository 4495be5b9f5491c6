#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: what users run over it: HTTP, ssh, NFS over TCP, DHCP, mDNS, tcpdump, a container
# TIMEOUT: 180
# CHECK-KERNELS: uml
# CHECK-PAIRS: none
# TOPOLOGY: any
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"
# shellcheck source=scripts/selftests/lib/rc-nfs
. "$SELFTESTS/rc-nfs"

FILE=$T_DIR/www/file
SIZE=$((16 << 20))

# The file as it comes over the network has the digest that it has here.
same() { echo "$1" && [ "${1%% *}" = "$(sha256sum <"$FILE" | cut -d' ' -f1)" ]; }

# Both hosts have the same one.
make_file() {
	local host
	for host in a b; do
		on $host mkdir -p "${FILE%/*}" && on $host python3 -c "
import random
with open('$FILE', 'wb') as file:
    file.write(random.Random($KIW_SEED).randbytes($SIZE))" || return 1
	done
}

SLOW=${KIW_SLOW:-1}

# fetch CMD...: by HTTP, where CMD runs it
fetch() {
	"$@" timeout $((60 * SLOW)) python3 -c "
import hashlib, urllib.request
print(hashlib.sha256(urllib.request.urlopen('http://$KB4:8080/file').read()).hexdigest())"
}

http() {
	spawn httpd b python3 -m http.server --bind "$KB4" --directory "${FILE%/*}" 8080
	wait_listen b 8080 && same "$(fetch on_a)"
}

# spawn_logging NAME a|b CMD...: what it says as an error is in the log at once, of another guest, too
# shellcheck disable=SC2016 # for the inner shell
spawn_logging() { spawn "$1" "$2" sh -c 'exec "$@" 2>&1' - "${@:3}"; }

# tcpdump reads what goes by datagram and by connection, both ways, and filters it. "arp host" would
# look for the addresses where Ethernet has them.
dumped() {
	local line
	spawn_logging dump a timeout $((60 * SLOW)) tcpdump -lni kip0 arp or icmp
	wait_for 10 grep -q 'listening on kip0' "$T_DIR/dump.log" || { spawn_log dump; return 1; }
	on_a ip neigh flush dev kip0
	kip_pings a "$KB4" -s 30000 || return 1
	for line in "ARP, Request who-has $KB4 tell $KA4, length 56" \
		"ARP, Reply $KB4 is-at 80:00:fc:f3:.*, length 56" \
		"IP $KA4 > $KB4: ICMP echo request, .* length 30008" \
		"IP $KB4 > $KA4: ICMP echo reply, .* length 30008"; do
		wait_for 10 grep -q "$line" "$T_DIR/dump.log" || { spawn_log dump; return 1; }
	done
	spawn_stop dump
}

# --- ssh -----------------------------------------------------------------------------

sshd() {
	local key
	ssh-keygen -q -t ed25519 -N '' -f "$T_DIR/key" && key=$(<"$T_DIR/key.pub") &&
		on_b bash -c "mkdir -p /run/sshd && echo '$key' >$T_DIR/key.pub &&
			ssh-keygen -q -t ed25519 -N '' -f $T_DIR/host_key" || return 1
	spawn sshd b /usr/sbin/sshd -D -e -p 2222 -f /dev/null -o "HostKey=$T_DIR/host_key" \
		-o "AuthorizedKeysFile=$T_DIR/key.pub" -o StrictModes=no -o UsePAM=no \
		-o "ListenAddress=[$KB6]:2222"
	wait_listen b 2222
}

ssh_copies() {
	sshd || { spawn_log sshd; return 1; }
	same "$(on_a timeout $((60 * SLOW)) ssh -F none -p 2222 -i "$T_DIR/key" -o StrictHostKeyChecking=no \
		-o UserKnownHostsFile=/dev/null "root@$KB6" sha256sum <"$FILE")" || { spawn_log sshd; return 1; }
	spawn_stop sshd
}

# --- NFS -----------------------------------------------------------------------------

nfs() {
	nfs_serve && mkdir -p "$NFS_MNT" &&
		on_a timeout $((60 * SLOW)) mount -t nfs -o vers=4.2,proto=tcp "$KB4:/" "$NFS_MNT" || return 1
	cp "$FILE" "$NFS_MNT/file" && nfs_umount &&
		on_a timeout $((60 * SLOW)) mount -t nfs -o vers=4.2,proto=tcp "$KB4:/" "$NFS_MNT" || return 1
	same "$(sha256sum <"$NFS_MNT/file")" || return 1
	nfs_umount && nfs_end
}

# --- DHCP ----------------------------------------------------------------------------

# The server is Debian's; the head of the client says why the client is not.
lease() {
	local address
	on_a ip addr flush dev kip0 scope global
	spawn_logging dhcpd b dnsmasq --keep-in-foreground --port=0 --conf-file=/dev/null --user=root \
		--interface=kip0 --bind-interfaces --dhcp-range=10.9.0.100,10.9.0.110,10m \
		--dhcp-leasefile="$T_DIR/leases" --log-dhcp --log-facility=-
	wait_for 10 grep -q 'IP range' "$T_DIR/dhcpd.log" || { spawn_log dhcpd; return 1; }
	address=$(on_a "$SELFTESTS/dhcp_client.py" kip0) || { spawn_log dhcpd; return 1; }
	spawn_stop dhcpd
	echo "$address" | grep -E '^10\.9\.0\.1(0[0-9]|10)$' &&
		on_a ip addr add "$address/24" dev kip0 && kip_pings a "$KB4"
}

# --- mDNS ----------------------------------------------------------------------------

avahi() {
	on_b bash -c "mkdir -p /run/avahi-daemon && printf '%s\n' [server] host-name=hostb \
		allow-interfaces=kip0 enable-dbus=no >$T_DIR/avahi.conf" || return 1
	spawn_logging avahi b avahi-daemon -f "$T_DIR/avahi.conf" --no-drop-root --no-chroot --no-rlimits
	wait_for 20 grep -q 'Server startup complete' "$T_DIR/avahi.log"
}

# RFC 6762: query and response are both sent to a multicast group.
ask_mdns() {
	on_a timeout $((30 * SLOW)) python3 -c "
import socket, struct
group = ('224.0.0.251', 5353)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('', 5353))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
             socket.inet_aton(group[0]) + socket.inet_aton('$KA4'))
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('$KA4'))
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
s.settimeout(2)
name = b'\x05hostb\x05local\0'
while True:
    s.sendto(struct.pack('>6H', 0, 0, 1, 0, 0, 0) + name + struct.pack('>2H', 1, 1), group)
    try:
        data, sender = s.recvfrom(9000)
    except TimeoutError:
        continue
    if name in data and socket.inet_aton('$KB4') in data:
        print('$KB4, says', sender[0])
        break"
}

mdns() {
	avahi || { spawn_log avahi; return 1; }
	ask_mdns || { spawn_log avahi; return 1; }
	spawn_stop avahi
}

# --- a container -----------------------------------------------------------------------

in_box() { nsenter --preserve-credentials -U -n -t "$(cat "$T_DIR/box.pid")" "$@"; }
is_box() { [ "$(readlink "/proc/$(cat "$T_DIR/box.pid")/ns/net")" != "$(on_a readlink /proc/self/ns/net)" ]; }

# Its root has no rights outside.
container() {
	on_a ip addr flush dev kip0 scope global
	spawn box a unshare --user --map-root-user --net tail -f /dev/null
	wait_for 10 is_box && on_a ip link set kip0 netns "$(cat "$T_DIR/box.pid")" || return 1
	in_box ip link set lo up && in_box ip addr add "$KA4/24" dev kip0 &&
		in_box ip link set kip0 up || return 1
	wait_for 10 in_box ping -q -c 1 -W 1 -s 40000 "$KB4" && same "$(fetch in_box)"
}

# Its interface goes with it.
container_ends() {
	spawn_stop box
	wait_gone 20 kip_listens a
}

# ------------------------------------------------------------------------------------------

if ! load_ip || ! topo_up || ! rdma_up || ! ip_up || ! make_file; then bail "no interfaces"; fi
t_run "an HTTP download" http
t_run "ssh, IPv6" ssh_copies
t_nfs "NFS over TCP" nfs
t_run "a name by mDNS" mdns
t_run "what tcpdump reads" dumped
t_run "nothing was lost" kip_is_sound
t_run "an address by DHCP" lease
t_run "a container without rights" container
t_run "the container ends" container_ends
spawn_stop httpd
on_b ip link del kip0
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
