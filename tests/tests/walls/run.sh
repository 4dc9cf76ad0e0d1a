# TOP=PID run.sh ROLE: makes every attempt of a role, and then begins those that others complete. One line for each: WALL ROLE NAME EXIT-CODE
ATT=${0%/*}
. "$ATT/env.sh"
WHO=$1 DRIVER=$(cat "$ATT/driver.pid") OTHERPID=$(cat "$ATT/other.pid") TTY=$(cat "$ATT/terminal") ABOVE= p=${TOP:-$$}
for _ in 1 2 3; do
  p=$(sed 's/.*) //' "/proc/$p/stat" 2>/dev/null | cut -d' ' -f2)
  [ "${p:-0}" -gt 0 ] && ABOVE="$ABOVE $p" || break
done
export ATT WHO DRIVER OTHERPID TTY ABOVE
# Never the shared directory: an attempt that is not confined would leave its files there.
TMPDIR=${TMPDIR:-$ATT/tmp}; export TMPDIR
try() {
  said=$(BY=$3 timeout 20 sh "$1" </dev/null 2>/dev/null)
  code=$?
  echo "WALL $WHO $2 $code"
  case $code$said in "0! "*) echo "$said" | head -n 1;; esac
}
for one in "$ATT/tries/$WHO"/*.sh; do
  [ -e "$one" ] || continue
  name=${one##*/} name=${name%.sh} name=${name#*-} by=
  case $name in *@*) by=${name##*@};; esac
  try "$one" "$name" "$by"
done
for one in "$ATT/begun/$WHO"/*.sh; do
  [ -e "$one" ] || continue
  timeout 20 sh "$one" </dev/null >/dev/null 2>&1
done
echo "WALL $WHO end 1"
