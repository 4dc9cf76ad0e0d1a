//! Ticks items of §6 by number.

use pdca_state::{BundleId, Snapshot, Summary, SummaryItem};
use serde::Serialize;

use crate::review::decision::Ticks;

/// The items of §6.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checklist {
    pub id: BundleId,
    pub open: Vec<String>,
    pub cleared: Vec<String>,
    /// The number of the standing question, if it is open.
    pub standing: Option<usize>,
    /// Every item in order. A number stays the number of its item when others are ticked.
    pub items: Vec<SummaryItem>,
}

impl Checklist {
    /// Returns the open and the cleared items of a bundle; `None` if it has no summary yet.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        let summary = snapshot.summary.as_ref()?;
        let items = summary.items();
        let standing = items.iter().find(|item| item.open && item.standing);
        Some(Self {
            id: snapshot.id.clone(),
            open: summary.open_texts(),
            cleared: summary.cleared_items().iter().map(|item| item.trim().to_owned()).collect(),
            standing: standing.map(|item| item.number),
            items: items.to_vec(),
        })
    }
}

/// The reason no item was ticked. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChecklistError {
    #[error("nothing is open in §6")]
    NothingOpen,
    #[error("no item was named")]
    NothingNamed,
    #[error("there is no item {number} in §6")]
    NoSuchItem { number: usize, items: usize },
    #[error("item {number} of §6 is ticked already")]
    AlreadyTicked { number: usize },
    /// A line looks like an item and is none, or the other way round.
    #[error("the boxes of §6 cannot be told apart from other text")]
    Ambiguous,
}

/// Returns the summary with these items ticked, each with the note behind it, and the items.
///
/// The result is parsed again, because the parser decides what an item is: exactly the chosen ones must have become
/// ticked, and nothing may be signed by it.
pub fn tick(
    summary: &Summary,
    ticks: &Ticks,
    note: Option<&str>,
) -> Result<(String, Vec<SummaryItem>), ChecklistError> {
    let chosen = chosen(summary, ticks)?;
    let text = ticked_text(summary, &chosen, note).ok_or(ChecklistError::Ambiguous)?;
    let items = summary.items().iter().filter(|item| chosen.contains(&item.number));
    Ok((text, items.cloned().collect()))
}

/// Returns the numbers of the items to tick, sorted and unique.
fn chosen(summary: &Summary, ticks: &Ticks) -> Result<Vec<usize>, ChecklistError> {
    let items = summary.items();
    let open: Vec<usize> = items.iter().filter(|item| item.open).map(|item| item.number).collect();
    let mut chosen = match ticks {
        Ticks::Nothing => return Err(ChecklistError::NothingNamed),
        Ticks::All | Ticks::Numbers(_) if open.is_empty() => {
            return Err(ChecklistError::NothingOpen);
        }
        Ticks::All => open,
        Ticks::Numbers(numbers) if numbers.is_empty() => return Err(ChecklistError::NothingNamed),
        Ticks::Numbers(numbers) => {
            for &number in numbers {
                match number.checked_sub(1).and_then(|index| items.get(index)) {
                    None => {
                        return Err(ChecklistError::NoSuchItem { number, items: items.len() });
                    }
                    Some(item) if !item.open => {
                        return Err(ChecklistError::AlreadyTicked { number });
                    }
                    Some(_) => {}
                }
            }
            numbers.clone()
        }
    };
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// Returns the text with these items ticked; `None` if that would change anything else.
fn ticked_text(summary: &Summary, chosen: &[usize], note: Option<&str>) -> Option<String> {
    let text = summary.text();
    let body = summary.section(6)?;
    // `section` returns a slice of `text`, so the distance of the pointers is its offset.
    let start = body.as_ptr() as usize - text.as_ptr() as usize;
    let note: Option<String> = note
        .map(|note| note.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|note| !note.is_empty());
    // Only open items are looked for, in order, so a line that repeats one cannot be taken for it.
    let mut open = summary.items().iter().filter(|item| item.open).zip(summary.open_items());
    let mut next = open.next();
    let mut ticked = text[..start].to_owned();
    for line in body.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let found = next.filter(|(_, written)| written.trim() == content.trim());
        match found {
            Some((item, _)) if chosen.contains(&item.number) => {
                ticked.push_str(&content.replacen("[ ]", "[x]", 1));
                if let Some(note) = &note {
                    ticked.push_str(" — ");
                    ticked.push_str(note);
                }
                ticked.push_str(&line[content.len()..]);
            }
            Some(_) | None => ticked.push_str(line),
        }
        if found.is_some() {
            next = open.next();
        }
    }
    ticked.push_str(&text[start + body.len()..]);
    // The parser decides what an item is. A line that only looked like one must not be ticked instead.
    is_ticked_only(summary, &Summary::parse(&ticked), chosen).then_some(ticked)
}

/// Returns whether `after` differs from `before` in that exactly the chosen items are ticked.
fn is_ticked_only(before: &Summary, after: &Summary, chosen: &[usize]) -> bool {
    let expected = before.items().iter().map(|item| item.open && !chosen.contains(&item.number));
    let found = after.items().iter().map(|item| item.open);
    expected.eq(found)
        && after.cleared_items().len() == before.cleared_items().len() + chosen.len()
        && after.outcome_token() == before.outcome_token()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Result\n\n## 6. NEEDS-HUMAN\n\n- [ ] a\n- [x] b\n- [ ] c\n- [ ] a\n\n## 9. Check sign-off\n\n- Outcome:\n";

    fn ticked(numbers: &[usize], note: Option<&str>) -> Result<String, ChecklistError> {
        tick(&Summary::parse(TEXT), &Ticks::Numbers(numbers.to_vec()), note).map(|(text, _)| text)
    }

    #[test]
    fn a_number_stays_the_number_of_its_item_when_others_are_ticked() {
        let first = ticked(&[1], None).unwrap();
        let (second, items) =
            tick(&Summary::parse(&first), &Ticks::Numbers(vec![4]), Some("two\nlines")).unwrap();
        assert_eq!(items.iter().map(|item| item.number).collect::<Vec<_>>(), [4]);
        assert!(second.contains("- [x] a\n- [x] b\n- [ ] c\n- [x] a — two lines\n"), "{second}");
        let (all, _) = tick(&Summary::parse(&second), &Ticks::All, None).unwrap();
        assert_eq!(
            tick(&Summary::parse(&all), &Ticks::All, None),
            Err(ChecklistError::NothingOpen)
        );
    }

    #[test]
    fn a_number_that_names_nothing_open_is_refused() {
        assert_eq!(ticked(&[2], None), Err(ChecklistError::AlreadyTicked { number: 2 }));
        for number in [0, 5] {
            assert_eq!(
                ticked(&[number], None),
                Err(ChecklistError::NoSuchItem { number, items: 4 })
            );
        }
        assert_eq!(ticked(&[], None), Err(ChecklistError::NothingNamed));
    }
}
