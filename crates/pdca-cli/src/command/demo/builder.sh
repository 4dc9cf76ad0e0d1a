#!/bin/sh
# Stands in for a coding agent: it works in the private checkout ($PWD) and leaves its notes in
# the staged view ($PDCA_BUNDLE), where it found the brief.
set -eu
notes=$PDCA_BUNDLE/build-notes.md
mkdir -p tests
case $1 in
12)
  cat > greet.sh <<'END'
#!/bin/sh
name=${1:-world}
echo "Hello, $name!"
END
  echo '[ "$(sh greet.sh)" = "Hello, world!" ]' > tests/issue-12.sh
  # Its own commit, which is kept as it is. Where one date was asked for, that is its date.
  if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
    export GIT_AUTHOR_DATE="@$SOURCE_DATE_EPOCH +0000" GIT_COMMITTER_DATE="@$SOURCE_DATE_EPOCH +0000"
  fi
  git add -A
  git -c user.name=Agent -c user.email=agent@example.org commit -q -m "greet: an empty name greets the world"
  echo "An empty name greets the world." > "$notes"
  ;;
15)
  # It needs what issue 12 made, and finds it in its checkout.
  grep -q world greet.sh
  if grep -q 'carry-forward' "$PDCA_BUNDLE/brief.md"; then
    day=day
  else
    day='$(date +%A)'
  fi
  cat > farewell.sh <<END
#!/bin/sh
sh greet.sh "\$@"
echo "Goodbye, \${1:-world}! Have a nice $day."
END
  echo 'sh farewell.sh | grep -q "Goodbye, world!" && sh farewell.sh | grep -q "Hello, world!"' > tests/issue-15.sh
  echo "Says goodbye after the greeting of issue 12." > "$notes"
  ;;
20)
  sed 's/^(none yet)$/No script asks the clock./' README.md > README.new
  mv README.new README.md
  echo '! grep -l "date +" ./*.sh' > tests/issue-20.sh
  echo "SECRET RATIONALE: nobody but the person at sign-off should read this." > "$notes"
  ;;
23)
  # The first attempt is wrong. The second finds the person's words in the brief.
  if grep -q 'carry-forward' "$PDCA_BUNDLE/brief.md"; then
    printf '#!/bin/sh\necho "$1" | tr a-z A-Z\n' > shout.sh
  else
    printf '#!/bin/sh\necho "$1"\n' > shout.sh
  fi
  echo '- `shout.sh`' >> README.md
  echo '[ "$(sh shout.sh hey)" = HEY ]' > tests/issue-23.sh
  echo "Shouts." > "$notes"
  ;;
42)
  # A builder that reaches beyond its checkout: into the user's own one.
  printf '#!/bin/sh\necho greeter 1.0\n' > version.sh
  echo 'sh version.sh | grep -q "^greeter "' > tests/issue-42.sh
  if echo 'oops' 2> /dev/null >> "$PDCA_WORKSPACE/greeter/greet.sh"; then
    echo "Wrote into the user's checkout." > "$notes"
  else
    echo "Tried to write into the user's checkout; the kernel refused." > "$notes"
    echo "builder: tried to write the user's own greet.sh: refused"
  fi
  # And at the driver: the process that the lock names.
  driver=$(sed -n 's/.*process \([0-9]*\).*/\1/p' "$PDCA_WORKSPACE/.pdca/driver.lock")
  if kill -TERM "$driver" 2> /dev/null; then
    echo "Sent the driver a signal." >> "$notes"
  else
    echo "Tried to end the driver with a signal; it was refused." >> "$notes"
  fi
  ;;
esac
sleep 0.3
