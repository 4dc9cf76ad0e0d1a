//! The name of a new seal, and sealing while other drivers may be at work.

use pdca_state::{BundleId, sha256_hex};

use crate::ObjectId;
use crate::git::failure::RefError;
use crate::git::fence::{Fence, ReflogEntry, StepEffect};
use crate::git::name::RefNamespace;
use crate::git::seal::{Acceptance, SealError, Sealed, Signer, seal};
use crate::git::store::Store;

/// The number of tries while other processes take the fence.
const TRIES: u32 = 5;

/// Returns the name of a new seal. Two acceptances of the same change within one second differ in nothing but a number.
pub fn free_seal_name(
    known: &[Sealed],
    id: &BundleId,
    commits: (ObjectId, ObjectId),
    digests: (&str, &str),
    by: &Signer,
) -> RefNamespace {
    let is_taken = |name: &RefNamespace| {
        known.iter().any(|sealed| sealed.id() == id && sealed.record().run == *name)
    };
    // There are more names than seals.
    let mut nth = 0;
    loop {
        let name = name_of(id, commits, digests, by, nth);
        if !is_taken(&name) {
            return name;
        }
        nth += 1;
    }
}

/// Derives the name of a seal's ref from its contents, so that the same acceptance gives the
/// same seal everywhere, and landed commits have the same ids.
fn name_of(
    id: &BundleId,
    (base, head): (ObjectId, ObjectId),
    (patch, brief): (&str, &str),
    by: &Signer,
    nth: usize,
) -> RefNamespace {
    let Signer { name, email, seconds } = by;
    let nth = if nth > 0 { format!("\0{nth}") } else { String::new() };
    let text = format!("{id}\0{base}\0{head}\0{patch}\0{name}\0{email}\0{seconds}\0{brief}{nth}");
    let name = format!("s{:.25}", sha256_hex(text.as_bytes()));
    name.parse().expect("because it is letters and digits")
}

/// Seals under the present fence. Taking a new one would fence out a running driver, and a new ref takes nothing from it.
pub fn seal_under_present_fence(
    store: &Store,
    accepted: &Acceptance<'_>,
    log: ReflogEntry<'_>,
) -> Result<(Sealed, StepEffect), SealError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let fence = match Fence::current(store)? {
            Some(fence) => fence,
            None => Fence::take(store, accepted.run, 0)?,
        };
        match seal(store, &fence, accepted, log) {
            Err(SealError::Ref(RefError::Fenced { .. })) if tries < TRIES => {}
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_seal_changes_with_everything_that_is_sealed() {
        let id: BundleId = "7".parse().unwrap();
        let commit = |digit: &str| ObjectId::from_hex(digit.repeat(40).as_bytes()).unwrap();
        let by = |seconds| Signer { name: "a".into(), email: "b".into(), seconds };
        let name = |head, patch, brief, seconds, nth| {
            name_of(&id, (commit("a"), head), (patch, brief), &by(seconds), nth).to_string()
        };
        let all = [
            name(commit("b"), "p", "q", 1, 0),
            name(commit("c"), "p", "q", 1, 0),
            name(commit("b"), "r", "q", 1, 0),
            name(commit("b"), "p", "r", 1, 0),
            name(commit("b"), "p", "q", 2, 0),
            name(commit("b"), "p", "q", 1, 1),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
        assert_eq!(name(commit("b"), "p", "q", 1, 0), all[0]);
    }
}
