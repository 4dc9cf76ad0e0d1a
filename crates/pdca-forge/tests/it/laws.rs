//! Laws over random exports, written by a writer of its own.

use std::fmt::Write as _;

use pdca_forge::select::{
    BucketSettings, Character, Condition, PoolError, SelectSettings, Selector,
};
use proptest::prelude::*;

/// Writes a field, in quotes where it must be or where the dice say so.
fn field(text: &str, separator: char, in_quotes: bool) -> String {
    let must = text.contains(['"', '\r', '\n', separator]);
    if must || in_quotes { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn values() -> impl Strategy<Value = Vec<(String, String, bool)>> {
    let text = "[a-z,;|\"\t\r\n éß☃.-]{0,12}";
    prop::collection::vec((text, "[A-Za-z ]{0,6}", any::<bool>()), 1..40)
}

fn selector(settings: &SelectSettings) -> Selector {
    let today = "2026-11-17".parse().expect("it is a date");
    Selector::new(settings, today).expect("the settings of the test are valid")
}

proptest! {
    #[test]
    fn what_was_written_is_read_back_with_every_separator_and_line_end(
        rows in values(),
        separator in prop::sample::select(vec![',', ';', '\t', '|']),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        mark in any::<bool>(),
        last_end in any::<bool>(),
    ) {
        let mut export = if mark { "\u{feff}".to_owned() } else { String::new() };
        export += &["id", "title", "status"].join(&separator.to_string());
        export += end;
        let mut lines = Vec::new();
        let mut line = 2_u64;
        for (number, (title, status, in_quotes)) in rows.iter().enumerate() {
            lines.push(line);
            let fields = [
                (number + 1).to_string(),
                field(title, separator, *in_quotes),
                field(status, separator, *in_quotes),
            ];
            export += &fields.join(&separator.to_string());
            export += end;
            line += 1 + u64::try_from(line_ends(title)).unwrap();
        }
        if !last_end {
            export.truncate(export.len() - end.len());
        }
        let settings = SelectSettings {
            buckets: vec![BucketSettings { name: "all".to_owned(), ..BucketSettings::default() }],
            ..SelectSettings::default()
        };
        let pool = selector(&settings).read_csv(export.as_bytes(), None).unwrap();
        prop_assert_eq!(pool.records.len(), rows.len());
        for (record, ((title, status, _), line)) in pool.records.iter().zip(rows.iter().zip(lines)) {
            let title: Vec<&str> = title.split_whitespace().collect();
            prop_assert_eq!(&*record.title, title.join(" "));
            prop_assert_eq!(&*record.status, status.trim());
            prop_assert_eq!(record.line, line);
        }
    }

    #[test]
    fn the_buckets_are_a_partition_of_the_records(
        rows in prop::collection::vec(("(new|open|closed|)", "[a-c]{0,3}", 1_u32..28), 1..60),
        rest in any::<bool>(),
    ) {
        let when = |key: &str, condition: Condition| [(key.to_owned(), condition)].into();
        let mut buckets = vec![
            BucketSettings { name: "done".to_owned(), drop: Some("closed".to_owned()),
                when: when("status", Condition::AnyOf(vec!["CLOSED".to_owned(), "x".to_owned()])), disposition: None },
            BucketSettings { name: "a".to_owned(),
                when: when("title", Condition::Matches { regex: "^a".to_owned() }), ..BucketSettings::default() },
            BucketSettings { name: "old".to_owned(),
                when: when("age", Condition::Is("> 10d".to_owned())), ..BucketSettings::default() },
        ];
        if rest {
            buckets.push(BucketSettings { name: "rest".to_owned(), ..BucketSettings::default() });
        }
        let mut export = "id,title,status,created\n".to_owned();
        for (number, (status, title, day)) in rows.iter().enumerate() {
            writeln!(export, "{number},{title},{status},2026-11-{day:02}").expect("memory suffices");
        }
        // By hand, in the order of the buckets.
        let bucket = |(status, title, day): &(String, String, u32)| match () {
            () if status == "closed" => Some(0),
            () if title.starts_with('a') => Some(1),
            () if *day < 7 => Some(2),
            () => rest.then_some(3),
        };
        let read = selector(&SelectSettings { buckets: buckets.clone(), ..SelectSettings::default() })
            .read_csv(export.as_bytes(), None);
        let left = rows.iter().filter(|row| bucket(row).is_none()).count();
        if left > 0 {
            let Err(PoolError::Remainder { count, .. }) = read else { panic!("{read:?}") };
            prop_assert_eq!(count, u64::try_from(left).unwrap());
            return Ok(());
        }
        let pool = read.unwrap();
        for (record, row) in pool.records.iter().zip(&rows) {
            prop_assert_eq!(&pool.bucket_of(record).name, &buckets[bucket(row).unwrap()].name);
        }
        let sum: u64 = pool.tallies().iter().map(|tally| tally.count).sum();
        prop_assert_eq!(sum, u64::try_from(rows.len()).unwrap());
        for character in [None, Some(Character::Fix), Some(Character::Hygiene)] {
            let dropped = usize::try_from(pool.tallies()[0].count).unwrap();
            prop_assert_eq!(pool.order(character).len() + dropped, rows.len());
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
        let selector = selector(&SelectSettings::default());
        drop(selector.read_csv(&bytes[..], None));
        drop(selector.read_json(&bytes));
        drop(selector.read_csv(&[&b"id,title,created\n"[..], &bytes].concat()[..], None));
    }
}

/// Counts the line ends in a text: CR LF is one.
fn line_ends(text: &str) -> usize {
    let crlf = text.matches("\r\n").count();
    text.matches('\r').count() + text.matches('\n').count() - crlf
}

#[test]
fn a_batch_to_fix_takes_the_gravest_first_and_one_of_hygiene_the_oldest() {
    let export = "id,title,severity,created,updated\n\
        10,a,minor,2020-01-01,2026-01-01\n\
        9,b,minor,2020-01-01,2026-01-01\n\
        3,c,blocker,2026-11-01,2026-11-02\n\
        4,d,critical,2026-10-01,2026-11-03\n\
        5,e,,,\n";
    let pool = selector(&SelectSettings::default()).read_csv(export.as_bytes(), None).unwrap();
    let order = |character| -> Vec<&str> {
        pool.order(character).iter().map(|record| record.id.as_str()).collect()
    };
    assert_eq!(order(None), ["10", "9", "3", "4", "5"]);
    assert_eq!(order(Some(Character::Fix)), ["4", "3", "9", "10", "5"]);
    assert_eq!(order(Some(Character::Hygiene)), ["9", "10", "4", "3", "5"]);
}

#[test]
fn the_profile_counts_every_record_once_in_each_table() {
    let export = "id,title,status,severity,component,created\n\
        1,a,new,major,ui,2026-11-16\n2,b,new,minor,ui,2026-10-20\n3,c,closed,major,,2020-01-01\n4,d,new,,core,soon\n";
    let pool = selector(&SelectSettings::default()).read_csv(export.as_bytes(), None).unwrap();
    let profile = pool.profile("2026-11-17".parse().unwrap());
    for table in [&profile.status, &profile.severity, &profile.component] {
        assert_eq!(table.iter().map(|count| count.count).sum::<u64>(), 4, "{table:?}");
    }
    let ages: Vec<u64> = profile.age.iter().map(|age| age.count).collect();
    assert_eq!(ages, [1, 1, 0, 0, 0, 1, 1]);
    assert_eq!(pool.unread_dates.as_ref().map(|dates| (dates.count, dates.line)), Some((1, 5)));
}

#[test]
fn a_column_that_only_a_bucket_knows_is_looked_at() {
    let settings = SelectSettings {
        buckets: vec![
            BucketSettings {
                name: "always".to_owned(),
                when: [("Reproducibility".to_owned(), Condition::Is("always".to_owned()))].into(),
                ..BucketSettings::default()
            },
            BucketSettings { name: "rest".to_owned(), ..BucketSettings::default() },
        ],
        ..SelectSettings::default()
    };
    let read = |export: &str| selector(&settings).read_csv(export.as_bytes(), None);
    let pool = read("id,title,reproducibility\n1,a,Always\n2,b,never\n").unwrap();
    assert_eq!((pool.tallies()[0].count, pool.tallies()[1].count), (1, 1));
    let refused = read("id,title\n1,a\n").unwrap_err().to_string();
    assert_eq!(
        refused,
        "bucket `always` looks at `Reproducibility`, which the export does not have"
    );
}

#[test]
fn descriptions_are_read_for_the_chosen_alone() {
    let export = "id,title,description\n1,a,\"one\n\ntwo\"\n2,b,x\n3,c,\n";
    let ids = ["1", "3"].map(|id| id.parse().unwrap()).into();
    let found =
        selector(&SelectSettings::default()).descriptions(export.as_bytes(), None, &ids).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[&"1".parse().unwrap()], "one\n\ntwo");
}
