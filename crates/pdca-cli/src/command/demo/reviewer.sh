#!/bin/sh
# Stands in for a reviewing model: it gets copies of the brief, the patch and the gate report, and
# a throwaway checkout ($PWD). What it prints is the review.
set -eu
secret=$PDCA_WORKSPACE/results/issue_$1/build-notes.md
if cat "$secret" > /dev/null 2>&1; then
  saw="NEEDS-HUMAN | The reviewer could read build-notes.md; it is not independent here."
else
  saw="PASS | Tried to read the builder's notes by their absolute path: refused."
fi
sleep 0.2
cat <<END
| Item | Verdict | Basis |
|------|---------|-------|
| C1 Spec | PASS | The brief says what success is. |
| C2 Reproduction (red pre-fix) | N/A | The test is new. |
| C3 Change | PASS | $(grep -c '^+' "$PDCA_BUNDLE/patch.diff") added lines, all in scope. |
| C4 Verification (red→green) | $(sh "tests/issue-$1.sh" > /dev/null 2>&1 && echo PASS || echo FAIL) | Ran the issue's test in a copy. |
| C5 Causal adequacy | PASS | The cause is changed, not the symptom. |
| T1 Structure | PASS | Every script parses. |
| T2 Shape | N/A | No gate. |
| T3 Runtime | PASS | All tests ran. |
| T4 Contribution | N/A | Nothing is published. |
| T5 Judgment | $saw |
| Validation — fitness-to-purpose | NEEDS-HUMAN | Is this what the people who use it want? |
END
