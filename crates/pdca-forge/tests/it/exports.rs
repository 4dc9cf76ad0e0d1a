//! Awkward exports: each gives the right count, or an error that names the line.

use pdca_forge::select::{PoolError, SelectSettings, Selector};

/// Reads an export, and tells its records or its error in one line.
fn told(bytes: &[u8], separator: Option<u8>) -> String {
    let today = "2026-11-17".parse().expect("it is a date");
    let selector =
        Selector::new(&SelectSettings::default(), today).expect("the defaults are valid");
    match selector.read_csv(bytes, separator) {
        Ok(pool) => {
            let records = pool.records.iter();
            records
                .map(|one| format!("{}@{} {}", one.id, one.line, one.title))
                .collect::<Vec<_>>()
                .join("; ")
        }
        Err(PoolError::Flawed { flaws, total }) => {
            let flaws: Vec<String> =
                flaws.iter().map(|flaw| format!("line {}: {}", flaw.line, flaw.kind)).collect();
            format!("{total} bad: {}", flaws.join("; "))
        }
        Err(PoolError::MissingColumn { field, there, nearest, .. }) => {
            format!("no {field} among {}, near {nearest:?}", there.join("+"))
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn thirty_awkward_exports_are_counted_right_or_refused_with_the_line() {
    let cases: &[(&str, &[u8], &str)] = &[
        ("plain", b"id,title\n1,a\n2,b\n", "1@2 a; 2@3 b"),
        ("no line end at the end", b"id,title\n1,a\n2,b", "1@2 a; 2@3 b"),
        ("CR LF", b"id,title\r\n1,a\r\n2,b\r\n", "1@2 a; 2@3 b"),
        ("CR alone", b"id,title\r1,a\r2,b\r", "1@2 a; 2@3 b"),
        ("a byte order mark", b"\xef\xbb\xbfid,title\n1,a\n", "1@2 a"),
        ("a mark before a quoted name", b"\xef\xbb\xbf\"id\",\"title\"\n1,a\n", "1@2 a"),
        ("semicolons", b"id;title\n1;a, b\n", "1@2 a, b"),
        ("tabs", b"id\ttitle\n1\ta;b\n", "1@2 a;b"),
        ("bars", b"id|title\n1|a\n", "1@2 a"),
        ("a separator in a quoted name", b"id;\"title\";\"a,b,c,d\"\n1;x;y\n", "1@2 x"),
        ("a declared separator", b"sep=;\r\nid;title\r\n1;a\r\n", "1@3 a"),
        ("a line end in a field", b"id,title\n1,\"two\nlines\"\n2,b\n", "1@2 two lines; 2@4 b"),
        ("CR LF in a field", b"id,title\r\n1,\"two\r\nlines\"\r\n2,b\r\n", "1@2 two lines; 2@4 b"),
        ("CR in a field", b"id,title\n1,\"two\rlines\"\n2,b\n", "1@2 two lines; 2@4 b"),
        ("doubled quotes", b"id,title\n1,\"say \"\"hi\"\", now\"\n", "1@2 say \"hi\", now"),
        ("a quote inside a field", b"id,title\n1,5\" disk\n2,b\n", "1@2 5\" disk; 2@3 b"),
        ("blank lines", b"\n\nid,title\n\n1,a\n\r\n\n2,b\n\n", "1@5 a; 2@8 b"),
        ("quoted everything", b"\"id\",\"title\"\n\"1\",\"a\"\n", "1@2 a"),
        ("a separator after each record", b"id,title\n1,a,\n2,b,\n", "1@2 a; 2@3 b"),
        ("other columns and order", b"x,Summary,y,Issue key\n,a,,PROJ-1\n", "PROJ-1@2 a"),
        ("ids with zeros and a hash", b"id,title\n0001234,a\n#7,b\n", "1234@2 a; 7@3 b"),
        ("a heading that only looks like records", b"id,title\n", "the export has no records"),
        ("nothing", b"", "the export has no records"),
        ("only line ends", b"\n\n\r\n", "the export has no records"),
        (
            "an open quote",
            b"id,title\n1,a\n2,\"b\n3,c\n4,d\n",
            "1 bad: line 3: the quote that opens in column `title` is never closed",
        ),
        (
            "an open quote after a field of two lines",
            b"title,id,x\n\"a\nb\",\"1\n,\n",
            "1 bad: line 3: the quote that opens in column `id` is never closed",
        ),
        (
            "an open quote in the header",
            b"id,\"title\n1,a\n",
            "1 bad: line 1: the quote that opens in column `2 of the header` is never closed",
        ),
        (
            "too many fields and too few",
            b"id,title\n1,a,b\n2,b\n3\n",
            "2 bad: line 2: the record has 3 fields, the header has 2; line 4: the record has 1 field, the header has 2",
        ),
        (
            "duplicates, also in another case",
            b"id,title\nab-1,a\n2,\"b\n\"\n2,c\nAB-1,d\n",
            "2 bad: line 5: `2` is there twice, first in line 3; line 6: `AB-1` is there twice, first in line 2",
        ),
        ("no id in a record", b"id,title\n,a\n2,b\n", "1 bad: line 2: the record has no id"),
        (
            "an id that is a path",
            b"id,title\n../x,a\n",
            "1 bad: line 2: `../x` is not an id: the character '/' is not allowed",
        ),
        (
            "no id column",
            b"isue key,title\n1,a\n",
            "no id among isue key+title, near Some(\"isue key\")",
        ),
        ("no title column", b"id,who\n1,a\n", "no title among id+who, near None"),
        ("UTF-16 with a mark", b"\xff\xfei\0d\0", "the export is UTF-16"),
        ("UTF-16 without one", b"i\0d\0,\0t\0", "the export is UTF-16"),
        ("Latin-1", b"id,title\n1,a\n2,caf\xe9\n", "1 bad: line 3: the record is not UTF-8"),
        (
            "a character cut by a separator",
            b"id,title,x\n1,\xc3,\xa9\n",
            "1 bad: line 2: the record is not UTF-8",
        ),
    ];
    assert!(cases.len() >= 30);
    for (name, bytes, expected) in cases {
        assert_eq!(told(bytes, None), *expected, "{name}");
    }
}

#[test]
fn a_given_separator_wins_over_a_found_one() {
    assert_eq!(
        told(b"id;title,x,y,z\n1;a,b,c\n", Some(b';')),
        "no title among id+title,x,y,z, near None"
    );
    assert_eq!(told(b"id|title|x,y,z,w\n1|a|b\n", Some(b'|')), "1@2 a");
}

#[test]
fn a_record_without_an_end_is_refused_before_it_fills_the_memory() {
    let mut export = b"id,title\n1,\"".to_vec();
    export.resize(20 << 20, b'x');
    let told = told(&export, None);
    assert_eq!(
        told,
        "1 bad: line 2: the record is longer than 8 MiB: probably a quote is never closed"
    );
}

#[test]
fn of_many_bad_records_ten_are_named_and_all_are_counted() {
    let export = format!("id,title\n{}", "1\n".repeat(500));
    let told = told(export.as_bytes(), None);
    assert!(
        told.starts_with("500 bad: line 2: ")
            && told.ends_with("line 11: the record has 1 field, the header has 2"),
        "{told}"
    );
}

#[test]
fn json_is_read_as_an_array_and_as_lines() {
    let selector =
        Selector::new(&SelectSettings::default(), "2026-11-17".parse().unwrap()).unwrap();
    let array = br#"[{"number": 7, "title": "a", "state": "OPEN", "labels": [{"name": "bug"}, {"name": "area/ui"}],
        "createdAt": "2026-11-01T00:00:00Z"}]"#;
    let pool = selector.read_json(array).unwrap();
    let record = &pool.records[0];
    assert_eq!((record.id.as_str(), &*record.component, &*record.kind), ("7", "ui", "bug"));
    let lines = b"{\"id\": \"A-1\", \"summary\": \"x\"}\n\n{\"id\": \"A-2\", \"summary\": \"y\"}\n";
    assert_eq!(selector.read_json(lines).unwrap().records[1].line, 3);
    let broken = selector.read_json(b"{\"id\": 1, \"title\": \"x\"}\nnot json\n");
    let Err(PoolError::Flawed { flaws, .. }) = broken else { panic!("{broken:?}") };
    assert_eq!(flaws[0].line, 2);
}
