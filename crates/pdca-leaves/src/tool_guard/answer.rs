//! The answer of the guard.

/// A decision, and the parts of the call that could not be examined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardAnswer {
    /// The reason against the call; `None` means that it is allowed.
    pub refusal: Option<GuardRefusal>,
    /// Parts that were not examined, such as the content of a script file.
    pub unseen: Vec<String>,
}

impl GuardAnswer {
    pub fn is_allowed(&self) -> bool {
        self.refusal.is_none()
    }
}

/// The reason why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}`: {why}")]
pub struct GuardRefusal {
    /// The command or path inside the call that is refused.
    pub part: String,
    /// The rule that it breaks.
    pub why: String,
    /// The alternative for the builder.
    pub instead: String,
}

impl GuardRefusal {
    pub(crate) fn new(part: impl Into<String>, why: impl Into<String>, instead: &str) -> Self {
        Self { part: shorten(&part.into()), why: why.into(), instead: instead.to_owned() }
    }
}

/// Cuts a long text and shows its unknown parts as an ellipsis.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 160;
    let text = text.replace(crate::tool_guard::walk::UNKNOWN, "…");
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= LONGEST && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    let cut: String = line.chars().take(LONGEST).collect();
    format!("{cut} …")
}
