//! Sets of characters, and case folding.

use std::sync::LazyLock;

/// A set of characters, as sorted, disjoint, inclusive ranges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CharSet(Vec<(u32, u32)>);

impl CharSet {
    /// Every character that a file name can have: all but NUL and `/`.
    pub(super) fn any() -> Self {
        Self(vec![(1, '/' as u32 - 1), ('/' as u32 + 1, 0xD7FF), (0xE000, 0x0010_FFFF)])
    }

    /// The union of these ranges or its complement, within [`CharSet::any`].
    pub(super) fn of(mut ranges: Vec<(u32, u32)>, negated: bool) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        if negated {
            let mut rest = Vec::with_capacity(merged.len() + 1);
            let mut next = 0;
            for (low, high) in merged {
                if low > next {
                    rest.push((next, low - 1));
                }
                next = high + 1;
            }
            rest.push((next, u32::MAX));
            merged = rest;
        }
        Self(merged).meet(&Self::any())
    }

    /// The intersection.
    pub(super) fn meet(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            let (low, high) = (a.0.max(b.0), a.1.min(b.1));
            if low <= high {
                both.push((low, high));
            }
            if a.1 < b.1 { i += 1 } else { j += 1 }
        }
        Self(both)
    }

    pub(super) fn contains(&self, c: char) -> bool {
        let c = c as u32;
        let after = self.0.partition_point(|range| range.0 <= c);
        after > 0 && c <= self.0[after - 1].1
    }

    /// Returns true if the intersection is not empty.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.0.iter().any(|a| {
            let after = other.0.partition_point(|b| b.0 <= a.1);
            after > 0 && a.0 <= other.0[after - 1].1
        })
    }

    /// A readable member other than `.`, for the example path of an overlap.
    pub(super) fn pick(&self) -> Option<char> {
        ('a'..='z')
            .chain('0'..='9')
            .chain('A'..='Z')
            .chain(['_', '-'])
            .find(|c| self.contains(*c))
            .or_else(|| {
                let firsts = self.0.iter().flat_map(|(low, high)| (*low..=*high).take(2));
                let mut firsts = firsts.filter_map(char::from_u32).filter(|c| *c != '.');
                firsts.next()
            })
    }

    /// Adds the fold of every member, so that two sets intersect if members of them fold alike.
    pub(super) fn folded(mut self) -> Self {
        let folds = FOLDS.iter().filter(|(from, _)| self.contains(*from));
        let added: Vec<(u32, u32)> = folds.map(|(_, to)| (*to as u32, *to as u32)).collect();
        self.0.extend(added);
        Self::of(self.0, false)
    }
}

/// An upper bound of the characters that have a case.
const LAST_CASED: char = '\u{1FFFF}';

/// All characters that fold to another one, with their fold.
static FOLDS: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
    let folds = ('\0'..=LAST_CASED).map(|c| (c, fold(c)));
    folds.filter(|(from, to)| from != to).collect()
});

/// Maps all characters that differ only in case to the same character.
pub(super) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let upper = only(c.to_uppercase()).unwrap_or(c);
    only(upper.to_lowercase()).unwrap_or(upper)
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_twice_is_folding_once() {
        for c in '\0'..=char::MAX {
            assert_eq!(fold(fold(c)), fold(c), "{c:?}");
            assert!(c <= LAST_CASED || fold(c) == c, "{c:?}");
        }
    }

    #[test]
    fn characters_that_differ_in_case_fold_to_one() {
        for c in '\0'..=char::MAX {
            for other in only(c.to_lowercase()).into_iter().chain(only(c.to_uppercase())) {
                assert_eq!(fold(other), fold(c), "{c:?} {other:?}");
            }
        }
    }

    #[test]
    fn what_is_not_in_a_set_is_in_its_complement() {
        let ranges = vec![('c' as u32, 'f' as u32), ('a' as u32, 'd' as u32), (0x41, 0x41)];
        let set = CharSet::of(ranges.clone(), false);
        let rest = CharSet::of(ranges, true);
        for c in '\u{1}'..'\u{200}' {
            assert_eq!(set.contains(c), ('a'..='f').contains(&c) || c == 'A', "{c:?}");
            assert_eq!(rest.contains(c), !set.contains(c) && c != '/', "{c:?}");
        }
        assert_eq!(set.meet(&rest).pick(), None);
        assert!(!set.meets(&rest) && set.meets(&CharSet::any()) && CharSet::any().meets(&rest));
    }
}
