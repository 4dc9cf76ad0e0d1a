//! What was accepted meets, is gated together and lands: the real binary and real git.

mod support {
    pub(crate) mod meeting;
}

use support::meeting::Meeting;

#[test]
fn accepted_changes_are_sealed_gated_together_landed_and_verified() {
    let scene = Meeting::new("test ! -e red");
    scene.accepted("12", "a.txt", "one\n");
    scene.accepted("15", "b.txt", "two\n");
    let before = scene.checkout();
    let done = scene.integrate(&["--land", "target"]).expect(0);
    assert!(done.out.contains("landed  12"), "{}\n{}", done.out, done.err);
    assert_eq!(scene.subjects(), ["pdca: issue_15|15", "pdca: issue_12|12", "first|"]);
    assert_eq!(scene.checkout(), before);
    let verified = scene.pdca(&["verify"]).expect(0);
    assert!(verified.out.starts_with("holds"), "{}", verified.out);
    scene.integrate(&[]).expect(4);
}
