# What a script finds instead of the programs that configure networks: functions that write their calls to /cage/calls, each with
# the script's line. They succeed, and answer questions about the host as one whose only interface is $NARROWS_INTERFACE, 192.0.2.2/24,
# with a router at 192.0.2.1. Those marked as stand-in are found by path and by other programs, too.
RANDOM=1
# As in FreeBSD's sh.
shopt -s expand_aliases

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

# Each line of a file, as arguments of a program. What a shell would take for more than words is quoted.
narrows_file() {
  local line more words
  while read -r line || [ -n "$line" ]; do
    while [[ $line == *\\ ]] && read -r more; do line="${line%\\}$more"; done
    case $line in '' | '#'*) continue ;; esac
    line=${line%%[[:space:]]#*}
    case $line in
      *[\;\&\|\<\>\$\`\(\)\*\?\~]*) read -ra words <<<"$line" && narrows_call "$1" "${words[@]}" ;;
      *) narrows_line "$1 ${line%"${line##*[![:space:]]}"}" ;;
    esac
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

# The disciplines or classes that the script has made at a device, as tc lists them.
narrows_made() {
  awk -v object="$1" -v device="$2" '
    $1 == "tc" && $2 ~ "^" substr(object, 1, 1) && $2 != "change" {
      name = kind = id = parent = ""
      for (i = 4; i <= NF && $i != "#"; i++) {
        if ($i == "dev") name = $++i
        else if ($i == "root") parent = "root"
        else if ($i == "ingress" || $i == "clsact") { kind = $i; id = "ffff:"; parent = "parent ffff:fff1" }
        else if ($i == "parent") parent = "parent " $++i
        else if ($i == "handle" || $i == "classid") id = $++i
        else { kind = $i; break }
      }
      key = name " " parent " " (object == "class" ? id : "")
      if ($3 ~ /^d/) { delete of[key]; if (parent == "root") for (k in of) if (index(k, name " ") == 1) delete of[k] }
      else if (!(key in of)) { of[key] = object " " kind " " (id == "" ? "8001:" : id) " dev " name " " parent; order[++n] = key }
    }
    END { for (i = 1; i <= n; i++) if (order[i] in of && (device == "" || index(order[i], device " ") == 1)) print of[order[i]] }
  ' /cage/calls
}

tc() { # stand-in
  local word last= device= file=
  narrows_words '-n -netns -b -batch' "$@"
  case $REPLY in
    'q'*' s'* | 'q'*' l'* | q | qdisc | 'c'*' s'* | 'c'*' l'*)
      for word; do
        [ "$last" != dev ] || device=$word
        last=$word
      done
      [[ $REPLY == q* ]] && narrows_made qdisc "$device" || narrows_made class "$device"
      ;;
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

narrows_link() {
  printf '2: %s: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq_codel state UP mode DEFAULT group default qlen 1000' "$1"
  [ -n "$2" ] || echo
  printf '    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff'
  [ -n "$2" ] || echo
  [ -z "$3" ] || printf '    inet 192.0.2.2/24 brd 192.0.2.255 scope global %s' "$1"
  [ -z "$2$3" ] || echo
}

ip() { # stand-in
  narrows_words '-n -netns -f -family -b -batch -c -rc' "$@"
  case $REPLY in
    'netns e'*)
      while [ "$1" != netns ]; do shift; done
      local -x NARROWS_INSIDE="${NARROWS_INSIDE:-}ip netns exec $3 "
      shift 3
      "$@"
      ;;
    r | ro | route | 'r s'* | 'r l'* | 'ro'*' s'* | 'ro'*' l'*)
      printf 'default via 192.0.2.1 dev %s proto static\n' "$NARROWS_INTERFACE"
      [[ " $* " == *' default '* ]] ||
        printf '192.0.2.0/24 dev %s proto kernel scope link src 192.0.2.2\n' "$NARROWS_INTERFACE"
      ;;
    'ro'*' g'* | 'r g'*) printf '192.0.2.1 dev %s src 192.0.2.2 uid 0\n    cache\n' "$NARROWS_INTERFACE" ;;
    l | li | link | a | ad | addr | address | 'l sh'* | 'li'*' sh'* | 'l s' | 'li'*' s' | 'a s'* | 'ad'*' s'* | 'l l'* | 'li'*' l'* | 'a l'* | 'ad'*' l'*)
      local name=${!#}
      case " $* " in *' type '* | *' up ') name= ;; esac
      case $name in '' | -* | l | li | link | l[si]* | a | ad* | s | sh*) name=$NARROWS_INTERFACE ;; esac
      [[ " $* " == *' -o '* || " $* " == *' -oneline '* ]] && local one=1 || local one=
      [[ $REPLY == l* ]] && narrows_link "$name" "$one" '' || narrows_link "$name" "$one" 1
      ;;
    'netns '[lsi]* | netns | ru | rule | 'ru'*' '[sl]* | n | ne | nei* | m* | '') ;;
    *)
      [[ $REPLY != l*' a'* ]] || narrows_add "$@"
      narrows_call ip "$@"
      ;;
  esac
}
# The name of a device that is added: after `name`, `dev` or the verb.
narrows_add() {
  local word last=
  for word; do
    case $last in a | ad* | name | dev) case $word in name | dev | link) ;; *) mkdir -p "/sys/class/net/$word" && return ;; esac ;; esac
    last=$word
  done
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
  local words=() word=${!#} flags= flag
  for flag; do [[ $flag == -* ]] || words+=("$flag"); done
  [ "${words[0]:-}" != set ] || [[ ${words[1]:-} != [0-9]* ]] || words=("${words[@]:2}")
  case ${words[0]:-} in nat | pipe | queue | sched) [[ ${words[1]:-} != [0-9]* ]] || words=("${words[0]}" "${words[@]:2}") ;; esac
  case "${words[*]:0:3}" in
    'table '*' list' | 'table '*' info' | 'table '*' lookup' | 'table '*' detail')
      # Those that were made; their entries are not kept.
      word=${words[1]}
      [ "$word" = all ] || grep -qE "ipfw .*table $word (create|add)" /cage/calls
      return
      ;;
    show* | list* | internal* | 'nat show'* | 'pipe show'* | 'pipe list'* | 'queue show'* | 'queue list'* | 'sched show'* | 'sched list'*)
      # Of given rules, those that were added.
      [[ $word != [0-9]* ]] || grep -E "ipfw .*add 0*$word " /cage/calls | sed 's/.* add //; s/ # .*//' | grep .
      return
      ;;
  esac
  words=${words[*]}
  if [ "$words" = "$word" ] && [[ $word == */* ]]; then
    for flag; do [[ $flag != -* ]] || flags+=" $flag"; done
    narrows_file "ipfw$flags" "$word"
    return
  fi
  narrows_call ipfw "$@"
  [[ $words != 'add '* && $words != add ]] || case " $* " in
    *' -q'* | *' -fq'*) ;;
    *)
      while [ "$1" != add ]; do shift; done
      shift
      [[ ${1:-} == [0-9]* ]] || set -- $(($(</cage/last) + 100)) "$@"
      printf '%d' "$((10#$1))" >/cage/last
      printf '%05d %s\n' "$((10#$1))" "${*:2}"
      ;;
  esac
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
  if [[ $# == 1 && $1 =~ ^[0-9]{1,9}s?$ && $(</cage/time) =~ ^[0-9]+$ ]]; then
    local total=$(($(</cage/time) + 10#${1%s}))
    echo $total >/cage/time
    [ $total -gt "$NARROWS_UNTIL" ] || return 0
  fi
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
  while [[ ${1:-} == -* ]]; do
    case $1 in -s | -k | --signal | --kill-after) shift ;; esac
    shift
  done
  shift
  "$@"
}
eatmydata() { narrows_run "$@"; }
ssh() { # stand-in
  while [[ ${1:-} == -* ]]; do
    case $1 in -[bcDEeFIiJLlmOopQRSWw]) shift ;; esac
    shift
  done
  local host=${1##*@}
  shift
  # What a reader knows of another host: its namespace.
  [ "$NARROWS_SYSTEM" != Linux ] || local -x NARROWS_INSIDE="${NARROWS_INSIDE:-}ip netns exec $host "
  [ $# -eq 0 ] || bash -c "$*"
}
docker() { # stand-in
  case ${1:-} in
    exec) ;;
    inspect)
      case $* in *Running*) echo true ;; *Pid*) echo 4242 ;; *) echo 192.0.2.2 ;; esac
      return
      ;;
    *) return 0 ;;
  esac
  shift
  while [[ ${1:-} == -* ]]; do
    case $1 in
      -e | --env) shift && local -x "$1" ;;
      -u | -w | -n | -c | --user | --workdir | --namespace | --container) shift ;;
    esac
    shift
  done
  local -x NARROWS_INSIDE="${NARROWS_INSIDE:-}docker exec $1 "
  shift
  [ "${1:-}" != -- ] || shift
  "$@"
}
podman() { docker "$@"; } # stand-in
lxc() { docker "$@"; } # stand-in
kubectl() { # stand-in
  while [[ ${1:-} == -* ]]; do
    case $1 in -n | --namespace | --context) shift ;; esac
    shift
  done
  docker "$@"
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
      [ "${1:-}" != -l ] || { echo "$NARROWS_INTERFACE lo0" && return; }
      [ "${1:-}" != -a ] || set --
      printf '%s: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n' "${1:-$NARROWS_INTERFACE}"
      printf '        inet 192.0.2.2  netmask 255.255.255.0  broadcast 192.0.2.255\n        ether 02:00:00:00:00:02\n'
      ;;
    *) [ "${2:-}" != create ] || case $1 in *[0-9]) echo "$1" ;; epair) echo epair0a ;; *) echo "${1}0" ;; esac ;;
  esac
}
uname() { # stand-in
  case $NARROWS_SYSTEM-${1:-} in
    Linux-*) /cage/bin/uname "$@" ;;
    *-*r*) echo 14.1-RELEASE ;;
    *-*m* | *-*p*) echo amd64 ;;
    *-*n*) echo host ;;
    *-*a*) echo "$NARROWS_SYSTEM host 14.1-RELEASE amd64" ;;
    *) echo "$NARROWS_SYSTEM" ;;
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

# Found, whatever it is; and without effect, if nothing stands in for it. A script may have functions of these names.
command() {
  case ${1:-} in
    -v | -V) type -P "${!#}" || printf '/usr/bin/%s\n' "${!#}" ;;
    -p) shift && command "$@" ;;
    *) if [ -n "${narrows_own[${1:-}]:-}" ]; then "narrows_own_$1" "${@:2}"; else builtin command "$@"; fi ;;
  esac
}
which() { # stand-in
  local name
  for name; do [[ $name == -* ]] || command -v "$name"; done
}
hash() { :; }
command_not_found_handle() {
  printf '%s\n' "$1" >>/cage/unknown
  return 0
}
declare -A narrows_own
for narrows_name in tc ip iptables ip6tables ipset ipfw dnctl sysctl ifconfig route sleep; do
  narrows_own[$narrows_name]=1
  narrows_body=$(declare -f $narrows_name)
  eval "narrows_own_$narrows_body"
  for narrows_path in /sbin /usr/sbin /bin /usr/bin /usr/local/sbin; do
    eval "function $narrows_path/$narrows_name { narrows_own_$narrows_name \"\$@\"; }"
  done
done
unset narrows_name narrows_path narrows_body
# Others, also by path.
for narrows_name in $(</cage/idle); do eval "$narrows_name() { :; }"; done
