# drive.sh PDCA: what the user does at the terminal. The driver's standard streams are files, its controlling terminal is the user's.
ATT=${0%/*}
. "$ATT/env.sh"
tty > "$ATT/terminal"
sleep 600 </dev/null >/dev/null 2>&1 &
other=$!
echo $other > "$ATT/other.pid"
cd "$START" || exit 99
# A file that the user's shell has open, as a descriptor that every child would inherit.
exec 8>>"$H/open-in-the-shell"
drive() {
  log=$1; shift
  sh -c 'echo $$ > "$0/driver.pid"; exec "$@"' "$ATT" perl "$ATT/keyring.pl" put "$PDCA" "$@" </dev/null >"$ATT/$log.out" 2>"$ATT/$log.err"
}
drive run run 7 8
code=$?
[ ! -d "$ATT/begun/last" ] || drive last run 9 10 11
drive status status
drive doctor doctor
sh "$ATT/run.sh" user > "$ATT/user.out"
kill $other
exit $code
