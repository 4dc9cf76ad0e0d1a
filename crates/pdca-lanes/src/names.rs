//! Names that are unique to one lane: its database, its containers, its temporary directory.
//!
//! Every name is `<prefix><slug>_<hash8>_l<slot>`. The slug is for people: lower case letters and digits, cut at 24.
//! The hash covers the workspace and the whole slug as it was given: 40 bits of SHA-256 in 8 letters. Read from the
//! right, a name can be split in one way only: digits, `_l`, eight letters, `_`, the slug. So two slots never share a
//! name, and neither do two slugs that still differ after they were made legal. Two slugs that became equal, and two
//! workspaces with the same slug, differ in the hash.

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};

/// The longest slug in a name.
const LONGEST_SLUG: usize = 24;
/// The number of letters of the hash.
const HASH_LETTERS: usize = 8;
/// The digits of the hash: lower case, and legal wherever a letter or a digit is.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// The suffix of the directory for temporary files of a target.
pub(crate) const TMP: &str = ".tmp";

/// The identity of a workspace, for names that must differ between workspaces of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceId([u8; 32]);

impl WorkspaceId {
    /// Identifies the workspace at this path, which must be absolute and free of symbolic links.
    pub fn of(canonical: &Utf8Path) -> Self {
        Self(Sha256::digest(canonical.as_str()).into())
    }

    /// Returns a number that depends only on the workspace.
    pub(crate) fn number(&self) -> u64 {
        u64::from_be_bytes(self.0[..8].try_into().expect("a digest has more than eight bytes"))
    }

    /// Returns the hash of this workspace and a slug.
    fn hash(&self, slug: &str) -> String {
        // The digest has a fixed length, so no two pairs of workspace and slug give the same input.
        let digest = Sha256::new().chain_update(self.0).chain_update(slug).finalize();
        let bits = digest[..5].iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let digit = |at: usize| usize::try_from(bits >> (5 * at) & 31).expect("five bits fit");
        (0..HASH_LETTERS).map(|at| char::from(ALPHABET[digit(at)])).collect()
    }
}

/// The private names of one lane, for the environment of the processes in it.
///
/// ```
/// use pdca_lanes::{PrivateNames, WorkspaceId};
///
/// let workspace = WorkspaceId::of("/srv/work".into());
/// let names = PrivateNames::new(&workspace, "Shop API", 2, "/srv/work.lanes/lane-2".into());
/// assert!(names.database().starts_with("test_shop_api_"));
/// assert!(names.database().ends_with("_l2"));
/// assert!(names.env().any(|(name, value)| name == "PDCA_LANE" && value == "2"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateNames {
    slot: u32,
    /// `<slug>_<hash8>_l<slot>`.
    stem: String,
    tmp: Utf8PathBuf,
    port_base: Option<u16>,
}

impl PrivateNames {
    /// Derives the names of a slot from the directory of the slot; `slug` is the name of the target.
    ///
    /// Creates nothing and takes no port: [`Lane::take_names`](crate::Lane::take_names) does that.
    pub fn new(workspace: &WorkspaceId, slug: &str, slot: u32, slot_dir: &Utf8Path) -> Self {
        Self {
            slot,
            stem: format!("{}_{}_l{slot}", legal_slug(slug), workspace.hash(slug)),
            tmp: slot_dir.join(format!("{slug}{TMP}")),
            port_base: None,
        }
    }

    /// Sets the first of the lane's ports.
    #[must_use]
    pub fn with_port_base(self, base: u16) -> Self {
        Self { port_base: Some(base), ..self }
    }

    /// Returns the slot number.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Returns the first of the lane's [ten ports](crate::PORTS_PER_LANE), once they are taken.
    pub fn port_base(&self) -> Option<u16> {
        self.port_base
    }

    /// Returns the name of the test database: at most 63 bytes of lower case letters, digits and `_`, starting with a
    /// letter, so that `PostgreSQL`, `MySQL` and `SQLite` accept it without quotes.
    pub fn database(&self) -> String {
        format!("test_{}", self.stem)
    }

    /// Returns the project name for `docker compose`, after which it names containers, networks and volumes.
    pub fn compose_project(&self) -> String {
        format!("pdca_{}", self.stem)
    }

    /// Returns the directory for temporary files, beside the checkout and not in it.
    pub fn tmp(&self) -> &Utf8Path {
        &self.tmp
    }

    /// Returns each variable with its value, sorted by name. Without ports there is no `PDCA_PORT_BASE`.
    pub fn env(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        [
            ("COMPOSE_PROJECT_NAME", Some(self.compose_project())),
            ("PDCA_LANE", Some(self.slot.to_string())),
            ("PDCA_PORT_BASE", self.port_base.map(|base| base.to_string())),
            ("PDCA_TEST_DB_NAME", Some(self.database())),
            ("PDCA_TMP", Some(self.tmp.to_string())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Reduces a slug to `[a-z0-9_]`, neither empty nor with `_` at either end.
fn legal_slug(slug: &str) -> String {
    let mut legal = String::new();
    for letter in slug.chars().map(|letter| letter.to_ascii_lowercase()) {
        if letter.is_ascii_alphanumeric() {
            legal.push(letter);
        } else if !legal.is_empty() && !legal.ends_with('_') {
            legal.push('_');
        }
    }
    legal.truncate(LONGEST_SLUG);
    let legal = legal.trim_end_matches('_');
    if legal.is_empty() { "x".to_owned() } else { legal.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn names(workspace: &str, slug: &str, slot: u32) -> PrivateNames {
        let dir = Utf8PathBuf::from(format!("{workspace}.lanes/lane-{slot}"));
        PrivateNames::new(&WorkspaceId::of(workspace.into()), slug, slot, &dir)
    }

    #[test]
    fn names_do_not_change_from_one_version_to_the_next() {
        let names = names("/srv/work", "Shop API", 2).with_port_base(20_000);
        let env: Vec<String> = names.env().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            env,
            [
                "COMPOSE_PROJECT_NAME=pdca_shop_api_ym73j3ct_l2",
                "PDCA_LANE=2",
                "PDCA_PORT_BASE=20000",
                "PDCA_TEST_DB_NAME=test_shop_api_ym73j3ct_l2",
                "PDCA_TMP=/srv/work.lanes/lane-2/Shop API.tmp",
            ]
        );
    }

    #[test]
    fn a_slug_becomes_what_every_consumer_takes() {
        let cases = [
            ("app", "app"),
            ("My-App.v2", "my_app_v2"),
            ("__a__", "a"),
            ("", "x"),
            ("日本", "x"),
            ("a 日 b", "a_b"),
            ("aaaaaaaaaaaaaaaaaaaaaaa-bbbb", "aaaaaaaaaaaaaaaaaaaaaaa"),
        ];
        for (slug, legal) in cases {
            assert_eq!(legal_slug(slug), legal, "{slug:?}");
        }
    }

    #[test]
    fn what_looks_like_the_end_of_a_name_in_a_slug_collides_with_nothing() {
        // The second slug is the first one followed by its own hash and slot.
        let first = names("/w", "a", 1);
        let tail = first.database()["test_".len()..].to_owned();
        assert_ne!(names("/w", &tail, 1).database(), first.database());
        assert_ne!(names("/w", "a_l1", 1).database(), names("/w", "a", 11).database());
    }

    /// Slugs of which many become equal when they are made legal.
    fn slug() -> impl Strategy<Value = String> {
        prop_oneof!["[a-bA-B_. -]{0,4}", "[a-z0-9_]{20,40}", "\\PC{0,30}"]
    }

    proptest! {
        #[test]
        fn a_name_is_legal_wherever_it_is_used(
            workspace in "/\\PC{0,20}", slug in slug(), slot in any::<u32>(),
        ) {
            let names = names(&workspace, &slug, slot);
            for name in [names.database(), names.compose_project()] {
                let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
                prop_assert!(name.bytes().all(plain), "{name}");
                prop_assert!(name.starts_with(|letter: char| letter.is_ascii_lowercase()), "{name}");
                prop_assert!(name.len() <= 63, "{name}");
            }
        }

        #[test]
        fn two_lanes_share_no_name(
            lanes in proptest::collection::hash_set(("/[ab]{0,2}", slug(), 0_u32..40), 2..40),
        ) {
            let mut seen = HashSet::new();
            for (workspace, slug, slot) in lanes {
                let names = names(&workspace, &slug, slot);
                for name in [names.database(), names.compose_project(), names.tmp().to_string()] {
                    prop_assert!(seen.insert(name.clone()), "{name} of {workspace} {slug:?} {slot}");
                }
            }
        }

        #[test]
        fn slots_of_one_workspace_differ_by_construction(slug in slug(), a in any::<u32>(), b in any::<u32>()) {
            prop_assume!(a != b);
            let stem = |slot| names("/w", &slug, slot).stem;
            let (left, right) = (stem(a), stem(b));
            prop_assert_ne!(left.rsplit_once("_l"), right.rsplit_once("_l"));
        }
    }
}
