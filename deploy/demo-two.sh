#!/bin/bash
# demo-two.sh start|pair|stop|status [--data DIR] [--ports A,B,C,D]
#
# Two machines on one host: two demos (demo.sh), called here and there, to send from one to the other.
#   start    starts what is down of both, and succeeds only when both answer
#   pair     what "Two machines" of docs/sends.md does by hand: each gets the other's card, an inbox for what the other
#            sends, and a line to it; a message goes each way. To be called again it needs a fresh DIR
#   stop     ends both, keeps the data
#   status   succeeds only when both run and answer
#   --data   where both keep everything (default: /var/lib/hanji-demo-two for root, ~/.local/state/hanji-demo-two for others)
#   --ports  HTTP and HTTPS of here, then of there: 8090,8453,8091,8454 at first; later the ones used before in the same DIR
# DIR/two.env makes a shell ready: the commands here and there, $HERE_URL, $THERE_URL, and $here, $there with the tokens.
set -u

die() { echo "demo-two.sh: $*" >&2; exit 1; }
usage() { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }

demo=$(cd "$(dirname "$0")" && pwd -P)/demo.sh || exit 1
verb='' ports='' data=''
while [ $# -gt 0 ]; do
    case $1 in
    --data | --ports) [ $# -ge 2 ] && [ -n "$2" ] || usage; declare "${1#--}=$2"; shift 2 ;;
    start | pair | stop | status) [ -z "$verb" ] || usage; verb=$1; shift ;;
    *) usage ;;
    esac
done
[ -n "$verb" ] || usage
if [ -z "$data" ]; then
    if [ "$(id -u)" = 0 ]; then data=/var/lib/hanji-demo-two
    else data=${XDG_STATE_HOME:-${HOME:?HOME is not set; name a folder with --data}/.local/state}/hanji-demo-two; fi
fi
[ "$verb" != start ] || mkdir -p "$data" || die "cannot make $data"
[ -d "$data" ] || { echo "no demo in $data"; [ "$verb" = stop ]; exit; }
data=$(cd "$data" && pwd -P) || die "cannot enter $data"

start_one() { # start_one NAME HTTP HTTPS: without ports those that it had
    "$demo" start --data "$data/$1" ${2:+--port "$2"} ${3:+--tls-port "$3"} >"$data/$1.log" || die "$1 did not start"
}

# shellcheck disable=SC1090 # made by demo.sh
of() { ( . "$data/$1/demo.env" && eval "echo \"\$$2\"" ); } # of NAME VARIABLE

write_env() {
    local name upper
    for name in here there; do
        upper=$(echo $name | tr '[:lower:]' '[:upper:]')
        cat <<END
${upper}_URL='$(of $name HANJI_URL)'
$name='Authorization: Bearer $(of $name HANJI_TOKEN)'
$name() { '$(of $name HANJI_BIN)' -c '$(of $name HANJI_CONF)' "\$@"; }
END
    done
}

start() {
    local a='' b='' c='' d='' more=''
    if [ -n "$ports" ] || [ ! -f "$data/two.env" ]; then
        IFS=, read -r a b c d more <<<"${ports:-8090,8453,8091,8454}"
        [ -n "$d" ] && [ -z "$more" ] || die "--ports: not four numbers: $ports"
    fi
    start_one here "$a" "$b"
    start_one there "$c" "$d"
    (umask 077 && write_env >"$data/two.env.new") && mv "$data/two.env.new" "$data/two.env" || die "cannot write $data/two.env"
    cat <<END
Two hanji are up.
  here   $(of here HANJI_URL)
  there  $(of there HANJI_URL)
  files  $data

Make a shell ready for "Two machines" in docs/sends.md:
  . $data/two.env
or have it done: $0 pair --data $data
END
}

print_of() { "$1" key show "$2" | sed -n 's/^fingerprint *//p'; } # print_of MACHINE CARD

join() { # join FROM TO: TO gets an inbox for what FROM sends, and FROM a line to it
    local from=$1 to=$2 url
    url=$(of "$to" HANJI_URL)
    echo
    echo "$from sends to $to. Whoever they are, these two must be the same:"
    echo "  $("$from" key export | print_of "$from" -)  says $from"
    echo "  $(print_of "$to" "$data/$from.card")  reads $to in the card"
    "$to" inbox add "from-$from" --from "$data/$from.card" >"$data/pair.log" &&
        "$from" line add "to-$to" "$url/inbox/from-$from" --seal-to "$data/$to.card" --allow-private >>"$data/pair.log" ||
        die "is it paired already? Look with: $from line list"
}

send() { # send FROM TO
    local from=$1 to=$2 id n=100
    id=$(curl -fsS --noproxy '*' -H "${!from}" -H 'Content-Type: text/plain; charset=utf-8' -d "Hello $to, it is $from" \
        "$(of "$from" HANJI_URL)/sends/to-$to" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
    [ -n "$id" ] || die "$from could not send"
    until curl -fsS --noproxy '*' -H "${!to}" "$(of "$to" HANJI_URL)/inbox/from-$from" | grep -q "$id"; do
        [ $((n -= 1)) -gt 0 ] || die "$id has not arrived: $from line show to-$to"
        sleep 0.1
    done
    echo "  $id went from $from to $to"
}

pair() {
    [ -f "$data/two.env" ] || die "start them first"
    # shellcheck disable=SC1091 # written above
    . "$data/two.env"
    here key export >"$data/here.card" && there key export >"$data/there.card" || die "no keys"
    join here there
    join there here
    echo
    send here there
    send there here
}

both() { # both VERB
    local name failed=0
    for name in here there; do
        echo "$name:"
        "$demo" "$1" --data "$data/$name" || failed=1
    done
    return $failed
}

case $verb in
start | pair) "$verb" ;;
*) both "$verb" ;;
esac
