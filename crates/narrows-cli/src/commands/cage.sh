# cage SCRIPT SECONDS INTERFACE [ARGUMENT…]: runs a script where it reaches nothing of this host: in namespaces of its own, which
# the caller has made for an unprivileged user, without a network, with tools that only work on text, and with stand-ins for those
# that configure networks (stand-ins.sh, in $NARROWS_STAND_INS). Standard input has copies of the script and of what is beside it,
# for each file a line `SIZE PATH` and its bytes, then an empty line; the cage ends when it is closed. Writes the stand-ins' calls to
# standard output, and what else happened to standard error.
set -euo pipefail
exec 9<&0 </dev/null
# What the caller's caller has open is not the script's.
for open in /proc/self/fd/*; do
  case ${open##*/} in 0 | 1 | 2 | 9) ;; *) eval "exec ${open##*/}>&-" ;; esac
done
script=$1 seconds=$2 interface=$3
shift 3
fail() { printf 'failed %s\n' "$*" >&2; exit 1; }

# Hides nothing that is needed below.
root=/sys
mount -t tmpfs -o size=64m none $root || fail "the kernel refuses a file system for the script"
mkdir -p $root/{cage,dev,etc/defaults,home,old,opt,proc,root,run,tmp,usr/{bin,sbin,local/{bin,sbin}},var/{lock,log,run,tmp}}
# The calls have room, whatever the script writes.
mount -t tmpfs -o size=256m none $root/cage
mkdir $root/cage/bin
for folder in /lib /lib32 /lib64 /libx32 /usr/lib /usr/lib32 /usr/lib64; do
  if [ -L $folder ]; then
    ln -s "$(readlink $folder)" $root$folder
  elif [ -d $folder ]; then
    mkdir -p $root$folder
    mount --rbind $folder $root$folder || fail "the kernel refuses $folder"
  fi
done
ln -s usr/bin $root/bin
ln -s usr/sbin $root/sbin
tools="[ awk basename bash bc cat chmod cmp cp cut date dd diff dirname echo egrep env expr false fgrep find fold getopt gawk grep head
  hostname ln ls mawk md5sum mkdir mktemp mv nl nproc od paste printf readlink realpath rev rm rmdir sed seq shuf sort stat stty tail
  tee test touch tput tr true uniq wc xargs yes"
for tool in $tools; do
  if found=$(type -P "$tool"); then
    : >"$root/usr/bin/$tool"
    mount --bind "$(readlink -f "$found")" "$root/usr/bin/$tool" || fail "the kernel refuses $tool"
  fi
done
# For the cage itself.
cp "$(type -P umount)" "$(type -P uname)" $root/cage/bin/
for name in null zero full random urandom; do
  : >$root/dev/$name
  mount --bind /dev/$name $root/dev/$name || fail "the kernel refuses /dev/$name"
done
mount -t proc none $root/proc || fail "the kernel refuses /proc, as in a container that hides a part of it"
ln -s /proc/self/fd $root/dev/fd
ln -s fd/0 $root/dev/stdin
ln -s fd/1 $root/dev/stdout
ln -s fd/2 $root/dev/stderr

copies=()
while read -r -u 9 size path && [ -n "$size" ]; do
  mkdir -p "$root${path%/*}"
  head -c "$size" <&9 >"$root$path"
  copies+=("$root$path")
done
# Some may be programs.
[ ${#copies[@]} = 0 ] || chmod 755 -- "${copies[@]}"
[ -r "$root$script" ] || fail "the script cannot be copied"
folder=$(dirname "$script")

printf '%s' "$NARROWS_STAND_INS" >$root/cage/stand-ins
unset NARROWS_STAND_INS
printf '#!/usr/bin/bash\nexec bash "$@"\n' >$root/cage/sh
# A call by path, by sudo or xargs: BASH_ENV defines the function of the same name.
printf '#!/usr/bin/bash\n"${0##*/}" "$@"\n' >$root/cage/call
chmod 755 $root/cage/sh $root/cage/call
for shell in sh dash ash ksh; do ln -s /cage/sh $root/usr/bin/$shell; done
ln -sf /usr/bin/bash $root/usr/local/bin/bash
while read -r name; do
  for folder_of in /usr/sbin /usr/bin /usr/local/sbin; do ln -sf /cage/call "$root$folder_of/$name"; done
done < <(sed -n 's/^\([a-z][a-z0-9-]*\)() .*# stand-in$/\1/p' $root/cage/stand-ins)
printf 'root:x:0:0:root:/root:/bin/bash\n' >$root/etc/passwd
printf '127.0.0.1 localhost\n' >$root/etc/hosts
# FreeBSD's scripts of services, as far as they start one.
cat >$root/etc/rc.subr <<'RC'
checkyesno() { case ${!1:-} in [Yy][Ee][Ss] | [Tt][Rr][Uu][Ee] | [Oo][Nn] | 1) return 0 ;; esac; return 1; }
load_rc_config() { :; }
run_rc_command() { local of=${1:-start}_cmd; ${!of:-:}; }
RC
cp $root/etc/rc.subr $root/etc/network.subr
printf 'source_rc_confs() { :; }\n' >$root/etc/defaults/rc.conf
: >$root/etc/rc.conf
: >$root/cage/calls
: >$root/cage/unknown
echo 0 >$root/cage/last
idle="arp defaults devlink ebtables ethtool ifdown ifup insmod kextload killall kldload kldstat kldunload launchctl logger lsmod
  modprobe natd ndp networksetup pfctl pkg pkill rmmod scutil service sysrc systemctl tcpdump vconfig wpa_cli"
echo $idle >$root/cage/idle
for name in $idle; do
  for folder_of in /usr/sbin /usr/bin; do ln -sf /cage/call "$root$folder_of/$name"; done
done
echo 0 >$root/cage/time

work=$PWD
cd $root
pivot_root . old || fail "the kernel refuses another root"
/cage/bin/umount -l /old || fail "the kernel refuses to hide the host's files"
rmdir /old
for name in lo "$interface"; do
  mkdir -p "/sys/class/net/$name"/{queues/{rx,tx}-0,statistics}
  printf '1500\n' >"/sys/class/net/$name/mtu"
  printf 'up\n' >"/sys/class/net/$name/operstate"
  for counter in rx_bytes tx_bytes rx_packets tx_packets; do printf '0\n' >"/sys/class/net/$name/statistics/$counter"; done
done
# Programs that stand-ins replace, wherever the script expects them.
while IFS= read -r path; do
  name=${path##*/}
  [ ! -e "/usr/sbin/$name" ] || [ -e "$path" ] || { mkdir -p "${path%/*}" && ln -s /cage/call "$path"; } 2>/dev/null || true
done < <(grep -oE '/[A-Za-z0-9_./-]*(s?bin/(tc|ip|ipfw|dnctl|iptables|ip6tables|ipset|sysctl)|/tc/tc|/ipfw/ipfw)\b' "$script" | sort -u | head -n 50)
cd "$work" 2>/dev/null || cd "$folder"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root LOGNAME=root SHELL=/bin/bash
export NARROWS_INTERFACE=$interface BASH_ENV=/cage/stand-ins
unset ENV
ulimit -t "$seconds" -f 65536 -v 1048576 -u 500 2>/dev/null || true
bash "$script" "$@" >/cage/out 2>/cage/err 9<&- &
running=$!
# Until the script has ended, and what it has left running.
is_running() {
  local process
  for process in /proc/[0-9]*; do
    case $process in /proc/1 | '/proc/[0-9]*') ;; *) return 0 ;; esac
  done
  return 1
}
began=$SECONDS
while is_running; do
  if [ $((SECONDS - began)) -ge "$seconds" ]; then
    : >/cage/late
    break
  fi
  read -r -t 0.02 -u 9 || [ $? -gt 128 ] || { kill -9 -1 && exit 1; }
done
kill -9 -1 2>/dev/null || true
status=0
wait $running 2>/dev/null || status=$?
cat /cage/calls
{
  [ ! -e /cage/late ] || printf 'late\n'
  [ ! -e /cage/slept ] || printf 'slept\n'
  printf 'status %s\n' $status
  sort -u /cage/unknown | sed 's/^/unknown /'
  head -n 5 /cage/err | sed 's/^/said /'
} >&2
