//! Reads an export into a pool of records, each in one bucket.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::sync::Arc;

use jiff::civil::Date;
use pdca_state::{BundleId, IdError};

use crate::select::bucket::{Bucket, BucketCount, Values};
use crate::select::csv::{CsvError, CsvRecords, CsvText};
use crate::select::date::{age, day};
use crate::select::field::{IssueField, columns, nearest, plain};
use crate::select::json;
use crate::select::labels;
use crate::select::settings::{SelectSettings, SelectSettingsProblem};

/// The most flaws that an error keeps; the others are counted.
const FLAWS: usize = 10;

/// Reads exports by the settings of a workspace.
#[derive(Debug)]
pub struct Selector {
    settings: SelectSettings,
    buckets: Vec<Bucket>,
    /// Further columns that buckets look at, each with the bucket that names it.
    extra: Vec<(String, String)>,
    today: Date,
}

/// The records of an export.
#[derive(Debug)]
pub struct Pool {
    /// In the order of the export.
    pub records: Vec<IssueRecord>,
    /// The fields that the export has no column for.
    pub absent: Vec<IssueField>,
    pub unread_dates: Option<UnreadDates>,
    pub(crate) severities: Vec<String>,
    tallies: Vec<BucketCount>,
}

/// Dates in no form that is known; such an age counts as unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadDates {
    pub count: u64,
    /// The first, and its line.
    pub first: String,
    pub line: u64,
}

/// The short fields of one issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueRecord {
    pub id: BundleId,
    /// The line its record starts on.
    pub line: u64,
    pub title: Box<str>,
    pub status: Arc<str>,
    pub kind: Arc<str>,
    pub severity: Arc<str>,
    pub component: Arc<str>,
    pub created: Option<Date>,
    pub updated: Option<Date>,
    bucket: usize,
}

impl IssueRecord {
    /// Returns the whole days since its creation, if that is known.
    pub fn age(&self, today: Date) -> Option<i64> {
        age(self.created, today)
    }
}

/// The reasons why an export is no pool.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    #[error("the export cannot be read")]
    Io(#[from] io::Error),
    #[error("the export is UTF-16")]
    Utf16,
    #[error("the export has no records")]
    Empty,
    #[error("the export has no column for {field}")]
    MissingColumn {
        field: IssueField,
        /// The name in the settings, if one is set.
        configured: Option<String>,
        there: Vec<String>,
        /// The nearest of those.
        nearest: Option<String>,
    },
    #[error("bucket `{bucket}` looks at `{column}`, which the export does not have")]
    UnknownColumn { bucket: String, column: String, there: Vec<String> },
    /// Records that cannot be read, in the order of the export.
    #[error("{} of the export cannot be read", counted(*total))]
    Flawed { flaws: Vec<RecordFlaw>, total: u64 },
    #[error("{} in no bucket", counted_are(*count))]
    Remainder {
        count: u64,
        /// The first of them, with their lines.
        first: Vec<(BundleId, u64)>,
    },
    #[error("a setting is invalid: {0}")]
    Setting(SelectSettingsProblem),
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFlaw {
    pub line: u64,
    pub kind: FlawKind,
}

/// The reasons why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlawKind {
    #[error("the quote that opens in column `{column}` is never closed")]
    Unclosed { column: String },
    #[error("the record has {found} {}, the header has {expected}", if *found == 1 { "field" } else { "fields" })]
    Fields { found: usize, expected: usize },
    #[error("the record is longer than 8 MiB: probably a quote is never closed")]
    TooLong,
    #[error("the record is not UTF-8")]
    NotUtf8,
    #[error("the record has no id")]
    NoId,
    #[error(transparent)]
    Id(IdError),
    #[error("`{id}` is there twice, first in line {first}")]
    Duplicate { id: BundleId, first: u64 },
    #[error("not a JSON object: {0}")]
    Json(String),
}

fn counted(count: u64) -> String {
    if count == 1 { "1 record".to_owned() } else { format!("{count} records") }
}

fn counted_are(count: u64) -> String {
    format!("{} {}", counted(count), if count == 1 { "is" } else { "are" })
}

/// One record as read: the fields in the order of [`IssueField::ALL`], and further columns.
#[derive(Default)]
struct Row {
    fields: [String; IssueField::ALL.len()],
    extra: Vec<String>,
}

impl Row {
    fn get(&self, field: IssueField) -> &str {
        &self.fields[field as usize]
    }

    fn set(&mut self, field: IssueField, text: &str) {
        let place = &mut self.fields[field as usize];
        place.clear();
        place.push_str(text.trim());
    }

    /// Fills in what labels tell and no column does.
    fn derive(&mut self) {
        let labels = std::mem::take(&mut self.fields[IssueField::Labels as usize]);
        if !labels.is_empty() {
            for (field, of) in [
                (IssueField::Severity, labels::severity as fn(&str) -> Option<&str>),
                (IssueField::Component, labels::component),
                (IssueField::Kind, labels::kind),
            ] {
                if self.get(field).is_empty()
                    && let Some(value) = of(&labels)
                {
                    self.set(field, value);
                }
            }
        }
        self.fields[IssueField::Labels as usize] = labels;
        // Mantis and Bugzilla have the kind of a request among the severities.
        if self.get(IssueField::Kind).is_empty() && labels::is_kind(self.get(IssueField::Severity))
        {
            let kind = self.get(IssueField::Severity).to_owned();
            self.set(IssueField::Kind, &kind);
        }
    }
}

/// The columns of an export.
struct Header {
    names: Vec<String>,
    fields: [Vec<usize>; IssueField::ALL.len()],
    extra: Vec<usize>,
}

impl Header {
    fn fill(&self, text: CsvText<'_>, wanted: &dyn Fn(IssueField) -> bool, row: &mut Row) {
        for field in IssueField::ALL {
            match &self.fields[field as usize][..] {
                _ if !wanted(field) => row.set(field, ""),
                [] => row.set(field, ""),
                [one] => row.set(field, text.field(*one)),
                several => {
                    let parts = several.iter().map(|at| text.field(*at).trim());
                    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
                    row.set(field, &parts.join(", "));
                }
            }
        }
        row.extra.clear();
        row.extra.extend(self.extra.iter().map(|at| text.field(*at).to_owned()));
    }
}

/// Collects records while an export is read.
struct Collector<'s> {
    selector: &'s Selector,
    records: Vec<IssueRecord>,
    seen: HashMap<String, u64>,
    words: HashSet<Arc<str>>,
    flaws: Vec<RecordFlaw>,
    total_flaws: u64,
    counts: Vec<u64>,
    remainder: u64,
    left: Vec<(BundleId, u64)>,
    unread: Option<UnreadDates>,
}

impl<'s> Collector<'s> {
    fn new(selector: &'s Selector) -> Self {
        Self {
            selector,
            records: Vec::new(),
            seen: HashMap::new(),
            words: HashSet::new(),
            flaws: Vec::new(),
            total_flaws: 0,
            counts: vec![0; selector.buckets.len()],
            remainder: 0,
            left: Vec::new(),
            unread: None,
        }
    }

    fn flaw(&mut self, line: u64, kind: FlawKind) {
        self.total_flaws += 1;
        if self.flaws.len() < FLAWS {
            self.flaws.push(RecordFlaw { line, kind });
        }
    }

    fn word(&mut self, text: &str) -> Arc<str> {
        // An export has many records and few different words, so each word is kept once.
        if let Some(word) = self.words.get(text) {
            return Arc::clone(word);
        }
        let word: Arc<str> = text.into();
        self.words.insert(Arc::clone(&word));
        word
    }

    fn date(&mut self, text: &str, line: u64) -> Option<Date> {
        let date = day(text, self.selector.settings.dates);
        if date.is_none() && !text.is_empty() {
            let first = || UnreadDates { count: 0, first: text.chars().take(40).collect(), line };
            self.unread.get_or_insert_with(first).count += 1;
        }
        date
    }

    fn add(&mut self, line: u64, row: &mut Row) {
        let id = match parse_id(row.get(IssueField::Id)) {
            Ok(Some(id)) => id,
            Ok(None) => return self.flaw(line, FlawKind::NoId),
            Err(error) => return self.flaw(line, FlawKind::Id(error)),
        };
        // Ids that differ only in case would be one directory on some file systems.
        if let Some(first) = self.seen.get(&id.as_str().to_lowercase()) {
            let first = *first;
            return self.flaw(line, FlawKind::Duplicate { id, first });
        }
        self.seen.insert(id.as_str().to_lowercase(), line);
        row.derive();
        let created = self.date(row.get(IssueField::Created), line);
        let updated = self.date(row.get(IssueField::Updated), line);
        let today = self.selector.today;
        let row = &*row;
        let values = Values {
            field: &|field| row.get(field),
            extra: &row.extra,
            age: age(created, today),
            idle: age(updated, today),
        };
        let bucket = self.selector.buckets.iter().position(|bucket| bucket.takes(&values));
        let Some(bucket) = bucket else {
            self.remainder += 1;
            if self.left.len() < FLAWS {
                self.left.push((id, line));
            }
            return;
        };
        self.counts[bucket] += 1;
        let title = row.get(IssueField::Title).split_whitespace().collect::<Vec<_>>().join(" ");
        let title: String = title.chars().filter(|c| !c.is_control()).collect();
        let record = IssueRecord {
            id,
            line,
            title: title.into(),
            status: self.word(row.get(IssueField::Status)),
            kind: self.word(row.get(IssueField::Kind)),
            severity: self.word(row.get(IssueField::Severity)),
            component: self.word(row.get(IssueField::Component)),
            created,
            updated,
            bucket,
        };
        self.records.push(record);
    }

    fn finish(self, absent: Vec<IssueField>) -> Result<Pool, PoolError> {
        if self.total_flaws > 0 {
            return Err(PoolError::Flawed { flaws: self.flaws, total: self.total_flaws });
        }
        if self.remainder > 0 {
            return Err(PoolError::Remainder { count: self.remainder, first: self.left });
        }
        if self.records.is_empty() {
            return Err(PoolError::Empty);
        }
        let tallies = self.selector.buckets.iter().zip(self.counts);
        let tallies = tallies.map(|(bucket, count)| BucketCount {
            name: bucket.name.clone(),
            count,
            dropped: bucket.dropped.clone(),
            disposition: bucket.disposition.clone(),
        });
        Ok(Pool {
            tallies: tallies.collect(),
            records: self.records,
            absent,
            unread_dates: self.unread,
            severities: self.selector.settings.severities.clone(),
        })
    }
}

/// Parses an id. Mantis fills numbers up with zeros, which nobody writes elsewhere.
fn parse_id(text: &str) -> Result<Option<BundleId>, IdError> {
    let text = text.trim().trim_start_matches('#');
    if text.is_empty() {
        return Ok(None);
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let short = text.trim_start_matches('0');
    let text = if is_number && !short.is_empty() { short } else { text };
    text.parse().map(Some)
}

impl Selector {
    /// Prepares the buckets. Ages are counted up to `today`.
    pub fn new(settings: &SelectSettings, today: Date) -> Result<Self, PoolError> {
        if let Some(problem) = settings.validate().into_iter().next() {
            return Err(PoolError::Setting(problem));
        }
        let (buckets, extra) = Bucket::all(&settings.buckets).map_err(|what| {
            PoolError::Setting(SelectSettingsProblem { key: "bucket".to_owned(), what, hint: "" })
        })?;
        Ok(Self { settings: settings.clone(), buckets, extra, today })
    }

    /// Reads a CSV export to its end, one record in memory at a time.
    pub fn read_csv(&self, input: impl Read, separator: Option<u8>) -> Result<Pool, PoolError> {
        let mut collector = Collector::new(self);
        let mut row = Row::default();
        // A description is long and needed for few records only.
        let wanted = |field| {
            field != IssueField::Description
                || self.buckets.iter().any(|bucket| bucket.looks_at(field))
        };
        let header = self.each_record(input, separator, |header, line, text| match text {
            Ok(text) => {
                header.fill(text, &wanted, &mut row);
                collector.add(line, &mut row);
            }
            Err(kind) => collector.flaw(line, kind),
        })?;
        let is_absent = |field: &IssueField| header.fields[*field as usize].is_empty();
        collector.finish(IssueField::ALL.into_iter().filter(is_absent).collect())
    }

    /// Reads an export again and returns the descriptions of some records.
    pub fn descriptions(
        &self,
        input: impl Read,
        separator: Option<u8>,
        ids: &HashSet<BundleId>,
    ) -> Result<HashMap<BundleId, String>, PoolError> {
        let mut found = HashMap::new();
        let mut row = Row::default();
        self.each_record(input, separator, |header, _, text| {
            let Ok(text) = text else { return };
            header.fill(text, &|field| field == IssueField::Id, &mut row);
            let Ok(Some(id)) = parse_id(row.get(IssueField::Id)) else { return };
            if ids.contains(&id) {
                header.fill(text, &|field| field == IssueField::Description, &mut row);
                if !row.get(IssueField::Description).is_empty() {
                    found.insert(id, row.get(IssueField::Description).to_owned());
                }
            }
        })?;
        Ok(found)
    }

    fn each_record(
        &self,
        input: impl Read,
        separator: Option<u8>,
        mut each: impl FnMut(&Header, u64, Result<CsvText<'_>, FlawKind>),
    ) -> Result<Header, PoolError> {
        let mut records = CsvRecords::open(input, separator).map_err(|error| fatal(error, None))?;
        let header = match records.advance().map_err(|error| fatal(error, None))? {
            None => return Err(PoolError::Empty),
            Some(line) => {
                let flaw = RecordFlaw { line, kind: FlawKind::NotUtf8 };
                let text =
                    records.text().ok_or(PoolError::Flawed { flaws: vec![flaw], total: 1 })?;
                self.header(text.fields().map(|name| name.trim().to_owned()).collect())?
            }
        };
        loop {
            let line = match records.advance() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(header),
                Err(CsvError::Unclosed { line, field }) => {
                    let column = header.names.get(field).cloned().unwrap_or_default();
                    // The quote has taken the rest of the export with it: no further record can be read.
                    each(&header, line, Err(FlawKind::Unclosed { column }));
                    return Ok(header);
                }
                Err(CsvError::TooLong { line }) => {
                    each(&header, line, Err(FlawKind::TooLong));
                    return Ok(header);
                }
                Err(error @ (CsvError::Io(_) | CsvError::Utf16)) => {
                    return Err(fatal(error, Some(&header)));
                }
            };
            let (found, expected) = (records.len(), header.names.len());
            let Some(text) = records.text() else {
                each(&header, line, Err(FlawKind::NotUtf8));
                continue;
            };
            // Some exports end each record, but not the header, with a separator.
            let is_padded = found == expected + 1 && text.field(expected).is_empty();
            if found == expected || is_padded {
                each(&header, line, Ok(text));
            } else {
                each(&header, line, Err(FlawKind::Fields { found, expected }));
            }
        }
    }

    fn header(&self, names: Vec<String>) -> Result<Header, PoolError> {
        let plain_names: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let mut fields: [Vec<usize>; IssueField::ALL.len()] = Default::default();
        for field in IssueField::ALL {
            let configured = self.settings.columns.of(field);
            let found = columns(field, &plain_names, configured);
            if found.is_empty() && (configured.is_some() || field.is_required()) {
                return Err(PoolError::MissingColumn {
                    field,
                    configured: configured.map(str::to_owned),
                    nearest: nearest(field, &names, configured).map(str::to_owned),
                    there: names,
                });
            }
            fields[field as usize] = found;
        }
        let mut extra = Vec::new();
        for (column, bucket) in &self.extra {
            let wanted = plain(column);
            let Some(at) = plain_names.iter().position(|name| *name == wanted) else {
                let (bucket, column) = (bucket.clone(), column.clone());
                return Err(PoolError::UnknownColumn { bucket, column, there: names });
            };
            extra.push(at);
        }
        Ok(Header { names, fields, extra })
    }

    /// Reads records that a program printed as JSON: an array of objects, or one object per line.
    pub fn read_json(&self, bytes: &[u8]) -> Result<Pool, PoolError> {
        let mut collector = Collector::new(self);
        let mut row = Row::default();
        let mut present = [false; IssueField::ALL.len()];
        for record in json::records(bytes) {
            let (line, object) = match record {
                Ok(record) => record,
                Err(flaw) => {
                    collector.flaw(flaw.line, FlawKind::Json(flaw.why));
                    continue;
                }
            };
            let names: Vec<String> = object.keys().map(|name| plain(name)).collect();
            let values: Vec<String> = object.values().map(json::text).collect();
            for field in IssueField::ALL {
                let configured = self.settings.columns.of(field);
                let found = columns(field, &names, configured);
                let texts: Vec<&str> = found.iter().map(|at| values[*at].as_str()).collect();
                present[field as usize] |= !texts.is_empty();
                row.set(field, &texts.join(", "));
                if found.is_empty() && field.is_required() {
                    let there: Vec<String> = object.keys().cloned().collect();
                    return Err(PoolError::MissingColumn {
                        field,
                        configured: configured.map(str::to_owned),
                        nearest: nearest(field, &there, configured).map(str::to_owned),
                        there,
                    });
                }
            }
            row.extra.clear();
            for (column, _) in &self.extra {
                // A key that an object does not have is an empty value there.
                let at = names.iter().position(|name| *name == plain(column));
                row.extra.push(at.map(|at| values[at].clone()).unwrap_or_default());
            }
            collector.add(line, &mut row);
        }
        collector
            .finish(IssueField::ALL.into_iter().filter(|field| !present[*field as usize]).collect())
    }
}

fn fatal(error: CsvError, header: Option<&Header>) -> PoolError {
    let flaw = |line, kind| PoolError::Flawed { flaws: vec![RecordFlaw { line, kind }], total: 1 };
    match error {
        CsvError::Io(error) => PoolError::Io(error),
        CsvError::Utf16 => PoolError::Utf16,
        CsvError::TooLong { line } => flaw(line, FlawKind::TooLong),
        CsvError::Unclosed { line, field } => {
            let column = header.and_then(|header| header.names.get(field)).cloned();
            let column = column.unwrap_or_else(|| format!("{} of the header", field + 1));
            flaw(line, FlawKind::Unclosed { column })
        }
    }
}

impl Pool {
    /// Returns the buckets with their counts, in the order they are asked. The counts add up to the records.
    pub fn tallies(&self) -> &[BucketCount] {
        &self.tallies
    }

    /// Returns the bucket of a record of this pool.
    pub fn bucket_of(&self, record: &IssueRecord) -> &BucketCount {
        &self.tallies[record.bucket]
    }

    pub fn get(&self, id: &BundleId) -> Option<&IssueRecord> {
        self.records.iter().find(|record| record.id == *id)
    }

    /// Returns those of `expected` that the pool does not have.
    pub fn missing(&self, expected: &[BundleId]) -> Vec<BundleId> {
        let there: HashSet<&BundleId> = self.records.iter().map(|record| &record.id).collect();
        expected.iter().filter(|id| !there.contains(id)).cloned().collect()
    }
}
