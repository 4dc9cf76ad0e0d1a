# evil.sh NAME: makes .git/evil-NAME, a program that writes where only an unconfined process can
for file in ".git/evil-$1" ".git/evil-$1.sh"; do
  printf '#!/bin/sh\necho BREACH > "%s/BREACH-%s"\nexec cat\n' "$H" "$1" > "$file" && chmod 755 "$file" || exit 1
done
