# What a script finds instead of the programs that configure networks: functions that write their calls to /cage/calls, each with
# the script's line. They succeed, and answer questions about the host as one whose only interface is $NARROWS_INTERFACE, 192.0.2.2/24,
# with a router at 192.0.2.1. Those marked as stand-in are found by path and by other programs, too.
RANDOM=1

# Where the script is: FILE:LINE, in REPLY; empty in a shell of its own.
narrows_at() {
  local at
  REPLY=
  for ((at = 1; at < ${#BASH_SOURCE[@]}; at++)); do
    case ${BASH_SOURCE[at]} in
      /cage/* | /usr/* | environment | main | '') ;;
      *) REPLY=${BASH_SOURCE[at]##*/}:${BASH_LINENO[at - 1]} && return ;;
    esac
  done
}

# A line as a shell would read it.
narrows_line() {
  narrows_at
  printf '%s%s\n' "${NARROWS_INSIDE:-}$1" "${REPLY:+ # $REPLY}" >>/cage/calls
}

narrows_call() {
  local line=$1 word quote="'"
  shift
  for word; do
    case $word in
      '' | *[!A-Za-z0-9_./:,@%+=^-]*) word="'${word//$quote/$quote\\$quote$quote}'" ;;
    esac
    line+=" $word"
  done
  narrows_line "$line"
}

# Each line of a file, as arguments of a program.
narrows_file() {
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in '' | [[:space:]]#* | '#'*) continue ;; esac
    narrows_line "$1 $line"
  done <"$2"
}

# The first two words that are no options, in REPLY; options of one letter that have a value are given.
narrows_words() {
  local with=$1 words=() word skip=
  shift
  for word; do
    if [ -n "$skip" ]; then
      skip=
    elif [[ $word == -?* ]]; then
      case " $with " in *" $word "*) skip=1 ;; esac
    else
      words+=("$word")
    fi
  done
  REPLY="${words[*]:0:2}"
}

tc() { # stand-in
  local word file=
  narrows_words '-n -netns -b -batch' "$@"
  case $REPLY in
    '' | *' s' | *' sh'* | *' l' | *' ls'* | *' list' | *' get' | help* | monitor*) ;;
    *) narrows_call tc "$@" && return ;;
  esac
  while [ $# -gt 0 ]; do
    case $1 in
      -b | -ba*)
        file=${2:--}
        [ "$file" != - ] || file=/dev/stdin
        narrows_file tc "$file"
        return
        ;;
    esac
    shift
  done
}

ip() { # stand-in
  local all=("$@")
  narrows_words '-n -netns -f -family -b -batch -c -rc' "$@"
  case $REPLY in
    'netns e'*)
      while [ "$1" != netns ]; do shift; done
      local -x NARROWS_INSIDE="${NARROWS_INSIDE:-}ip netns exec $3 "
      shift 3
      "$@"
      ;;
    r | ro* | 'r s'* | 'r l'* | 'ro'*' s'* | 'ro'*' l'*)
      printf 'default via 192.0.2.1 dev %s proto static\n192.0.2.0/24 dev %s proto kernel scope link src 192.0.2.2\n' \
        "$NARROWS_INTERFACE" "$NARROWS_INTERFACE"
      ;;
    'ro'*' g'* | 'r g'*) printf '192.0.2.1 dev %s src 192.0.2.2 uid 0\n    cache\n' "$NARROWS_INTERFACE" ;;
    l | li* | a | ad* | 'l s'* | 'li'*' s'* | 'a s'* | 'ad'*' s'* | 'l l'* | 'li'*' l'* | 'a l'* | 'ad'*' l'*)
      local name=${all[-1]}
      case $name in -* | l* | a* | s*) name=$NARROWS_INTERFACE ;; esac
      printf '2: %s: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq_codel state UP mode DEFAULT group default qlen 1000\n' "$name"
      printf '    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff\n'
      [[ $REPLY == l* ]] || printf '    inet 192.0.2.2/24 brd 192.0.2.255 scope global %s\n' "$name"
      ;;
    'netns '[lsi]* | netns | ru | ru*' '[sl]* | n | ne | nei* | m* | '') ;;
    *) narrows_call ip "$@" ;;
  esac
}

narrows_iptables() {
  case " $* " in
    *' -C '* | *' --check '*) return 1 ;;
    *' -L '* | *' -S '* | *' -nL '* | *' -vnL '* | *' -nvL '* | *' --list '* | *' --list-rules '* | *' -V '*) ;;
    *) narrows_call "$@" ;;
  esac
}
iptables() { narrows_iptables iptables "$@"; }          # stand-in
iptables-legacy() { narrows_iptables iptables "$@"; }   # stand-in
iptables-nft() { narrows_iptables iptables "$@"; }      # stand-in
ip6tables() { narrows_iptables ip6tables "$@"; }        # stand-in
ipset() { # stand-in
  case ${1:-} in list | -L | test | save | -t | -v | '') return 1 ;; esac
  narrows_call ipset "$@"
}

ipfw() { # stand-in
  narrows_words '-p -c' "$@"
  case $REPLY in
    '' | list* | show* | *' show' | *' list' | zero* | resetlog* | internal* | 'table '*' info'* | nat\ show*) return ;;
  esac
  local word=${!#}
  if [ "$REPLY" = "$word" ] && [ -e "$word" ]; then
    narrows_file ipfw "$word"
  else
    narrows_call ipfw "$@"
  fi
}
dnctl() { # stand-in
  case " $* " in *' show '* | *' list '*) return ;; esac
  narrows_call dnctl "$@"
}
sysctl() { # stand-in
  case " $* " in
    *=*) narrows_call sysctl "$@" ;;
    *) echo 1 ;;
  esac
}
sleep() { # stand-in
  narrows_call sleep "$@"
  awk -v all="$*" -v most="$NARROWS_UNTIL" '
    { total += $0 }
    END {
      unit["s"] = 1; unit["m"] = 60; unit["h"] = 3600; unit["d"] = 86400
      n = split(all, each, " ")
      for (i = 1; i <= n; i++) { last = substr(each[i], length(each[i])); total += each[i] * (last in unit ? unit[last] : 1) }
      print total >"/cage/time"
      exit (total > most)
    }' /cage/time 2>/dev/null && return
  : >/cage/slept
  kill -9 -1
  kill -9 $BASHPID
}
usleep() { sleep "$(awk -v n="$1" 'BEGIN {print n / 1000000}')"; } # stand-in

# Others run what they are given.
narrows_run() {
  while [ $# -gt 0 ]; do
    case $1 in
      -u | -g | -U | -p | -C) shift 2 ;;
      -- | -*) shift ;;
      *=*) export "$1" && shift ;;
      *) break ;;
    esac
  done
  "$@"
}
sudo() { narrows_run "$@"; }   # stand-in
doas() { narrows_run "$@"; }   # stand-in
nohup() { narrows_run "$@"; }  # stand-in
setsid() { narrows_run "$@"; } # stand-in
stdbuf() { narrows_run "$@"; } # stand-in
nice() { # stand-in
  [ "${1:-}" != -n ] || shift 2
  narrows_run "$@"
}
taskset() { # stand-in
  [ "${1:-}" != -c ] || shift
  shift
  "$@"
}
timeout() { # stand-in
  while [[ ${1:-} == -* ]]; do shift; done
  shift
  "$@"
}
eatmydata() { narrows_run "$@"; }
ssh() { # stand-in
  while [[ ${1:-} == -* ]]; do
    case $1 in -[bcDEeFIiJLlmOopQRSWw]) shift ;; esac
    shift
  done
  shift
  [ $# -eq 0 ] || bash -c "$*"
}
docker() { # stand-in
  local verb=${1:-}
  [ "$verb" = exec ] || return 0
  shift
  while [[ ${1:-} == -* ]]; do
    case $1 in -e | -u | -w | --env | --user | --workdir) shift ;; esac
    shift
  done
  local -x NARROWS_INSIDE="${NARROWS_INSIDE:-}docker exec $1 "
  shift
  "$@"
}
nsenter() { # stand-in
  local options=
  while [[ ${1:-} == -* ]]; do
    options+="$1 "
    case $1 in -t | --target) options+="$2 " && shift ;; esac
    shift
  done
  local -x NARROWS_INSIDE="${NARROWS_INSIDE:-}nsenter $options"
  "$@"
}
jexec() { # stand-in
  while [[ ${1:-} == -* ]]; do shift; done
  shift
  "$@"
}

id() { [[ ${1:-} == -*n* ]] && echo root || echo 0; } # stand-in
whoami() { echo root; } # stand-in
ifconfig() { # stand-in
  case $# in
    0 | 1)
      printf '%s: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n' "${1:-$NARROWS_INTERFACE}"
      printf '        inet 192.0.2.2  netmask 255.255.255.0  broadcast 192.0.2.255\n        ether 02:00:00:00:00:02\n'
      ;;
  esac
}
route() { # stand-in
  case " $* " in
    *' get '*) printf '   route to: default\n    gateway: 192.0.2.1\n  interface: %s\n' "$NARROWS_INTERFACE" ;;
    *' add '* | *' del'* | *' change '*) ;;
    *) printf 'Destination     Gateway         Genmask         Flags Metric Ref    Use Iface\n0.0.0.0         192.0.2.1       0.0.0.0         UG    0      0        0 %s\n' "$NARROWS_INTERFACE" ;;
  esac
}
netstat() { printf 'default            192.0.2.1          UGS    %s\n' "$NARROWS_INTERFACE"; } # stand-in

# Found, whatever it is; and without effect, if nothing stands in for it.
command() {
  case ${1:-} in
    -v | -V) type -P "${!#}" || printf '/usr/bin/%s\n' "${!#}" ;;
    -p) shift && "$@" ;;
    *) "$@" ;;
  esac
}
which() { command -v "$@"; } # stand-in
hash() { :; }
command_not_found_handle() {
  printf '%s\n' "$1" >>/cage/unknown
  return 0
}
for narrows_name in tc ip iptables ip6tables ipset ipfw sysctl ifconfig route sleep; do
  for narrows_path in /sbin /usr/sbin /bin /usr/bin /usr/local/sbin; do
    eval "function $narrows_path/$narrows_name { $narrows_name \"\$@\"; }"
  done
done
for narrows_name in modprobe insmod rmmod lsmod kldload kldstat kldunload ethtool ifup ifdown service systemctl logger killall pkill; do
  eval "$narrows_name() { :; }"
done
unset narrows_name narrows_path
