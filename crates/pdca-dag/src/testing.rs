//! A notation for batches in tests: one bundle per line, `id: depends on ~ conflicts with @ touches`.
//!
//! Each part may be left out. A mark after the id gives the state: `2*` has begun, `2?` waits for a
//! person, `2=` waits for its sign-off, `2-` too but is red, `2+` is complete, `2^` has landed, `2!` was
//! given up. A prerequisite `2^` must have landed. `2/500` takes 500 ms. The brief of bundle 2 is the
//! file `2`; its three parts are declared in lines 1, 2 and 3.

use std::fmt::Write;
use std::time::Duration;

use pdca_state::{Awaits, BundleId};

use crate::*;

pub(crate) fn id(text: &str) -> BundleId {
    text.parse().unwrap()
}

pub(crate) fn items(batch: &str) -> Vec<Item> {
    batch.lines().map(str::trim).filter(|line| !line.is_empty()).map(item).collect()
}

fn item(line: &str) -> Item {
    let (line, touches) = line.split_once('@').unwrap_or((line, ""));
    let (line, conflicts) = line.split_once('~').unwrap_or((line, ""));
    let (name, depends) = line.split_once(':').unwrap_or((line, ""));
    let (name, millis) = match name.trim().split_once('/') {
        Some((name, millis)) => (name, Some(millis.parse().unwrap())),
        None => (name.trim(), None),
    };
    let bare = name.trim_end_matches(['*', '?', '=', '-', '+', '^', '!']);
    let mut item = Item::new(id(bare), SourceLocation::new(bare, 1));
    item.started = name != bare;
    item.standing = match &name[bare.len()..] {
        "" | "*" => ItemState::Active,
        "?" => ItemState::Waiting,
        "=" => ItemState::Built,
        "-" => ItemState::Red,
        "^" => ItemState::Landed,
        "+" => ItemState::Complete,
        "!" => ItemState::Ended,
        mark => panic!("{mark} is no mark"),
    };
    item.duration = millis.map(Duration::from_millis);
    let declared = |ids: &str, line| {
        let at = |other: &str| {
            let (other, awaits) = match other.strip_suffix('^') {
                Some(other) => (other, Awaits::Landed),
                None => (other, Awaits::Accepted),
            };
            Declared { awaits, ..Declared::new(id(other), SourceLocation::new(bare, line)) }
        };
        ids.split_whitespace().map(at).collect()
    };
    item.depends_on = declared(depends, 1);
    item.conflicts_with = declared(conflicts, 2);
    let touch = |glob: &str| Touch {
        glob: glob.to_owned(),
        place: SourceLocation::new(bare, 3),
        is_file: false,
    };
    item.touches = touches.split_whitespace().map(touch).collect();
    item
}

pub(crate) fn plan_with(batch: &str, options: Options) -> Plan {
    Plan::new(items(batch), &Outside::default(), options).unwrap()
}

pub(crate) fn plan(batch: &str) -> Plan {
    plan_with(batch, Options::default())
}

pub(crate) fn words<'a>(ids: impl IntoIterator<Item = &'a BundleId>) -> String {
    ids.into_iter().map(BundleId::as_str).collect::<Vec<_>>().join(" ")
}

/// A deterministic pseudo-random generator.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }
}

/// Makes a batch without cycles: bundles depend only on earlier ones of a shuffled order.
pub(crate) fn random_batch(dice: &mut Dice, bundles: usize) -> Vec<Item> {
    const GLOBS: [&str; 10] =
        ["a", "b", "a/x", "a/*", "**/x", "c/{d,e}", "c/d", "f?", "fg", "h/[!i]*"];
    let mut hidden: Vec<usize> = (10..10 + bundles).collect();
    for n in (1..bundles).rev() {
        hidden.swap(n, dice.roll(n + 1));
    }
    let (edges, conflicts, globs) = (dice.roll(4), dice.roll(3), dice.roll(3));
    let mut batch = String::new();
    for n in 0..bundles {
        let mark = ["", "", "", "", "", "", "?", "+"][dice.roll(8)];
        write!(batch, "{}{mark}:", hidden[n]).unwrap();
        for _ in 0..edges.min(n) {
            write!(batch, " {}", hidden[dice.roll(n)]).unwrap();
        }
        batch.push_str(" ~");
        for _ in 0..conflicts.min(dice.roll(3)) {
            write!(batch, " {}", hidden[dice.roll(bundles)]).unwrap();
        }
        batch.push_str(" @");
        for _ in 0..globs.min(dice.roll(3)) {
            write!(batch, " {}", GLOBS[dice.roll(GLOBS.len())]).unwrap();
        }
        batch.push('\n');
    }
    items(&batch)
}
