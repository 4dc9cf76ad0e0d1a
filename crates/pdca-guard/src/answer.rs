//! What the guard answers.

/// An answer, and what it could not look into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The reason against the call; without one it is allowed.
    pub refusal: Option<Refusal>,
    /// What was not looked into, such as the content of a script file.
    pub unseen: Vec<String>,
}

impl Answer {
    /// Whether the call may be made.
    pub fn is_allowed(&self) -> bool {
        self.refusal.is_none()
    }
}

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}`: {why}")]
pub struct Refusal {
    /// The command or path inside the call that is refused.
    pub part: String,
    /// The rule it breaks.
    pub why: String,
    /// What the builder does instead.
    pub instead: String,
}

impl Refusal {
    pub(crate) fn new(part: impl Into<String>, why: impl Into<String>, instead: &str) -> Self {
        Self { part: shorten(&part.into()), why: why.into(), instead: instead.to_owned() }
    }
}

/// The first characters of a long text; the unknown parts of it as an ellipsis.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 160;
    let text = text.replace(crate::walk::UNKNOWN, "…");
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= LONGEST && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    let cut: String = line.chars().take(LONGEST).collect();
    format!("{cut} …")
}
