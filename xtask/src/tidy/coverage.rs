//! Checks that each requirement has its test or decision, and that the page says so.

use super::{Finding, SourceFile};
use crate::{Stopped, coverage};

pub(super) fn check(files: &[SourceFile]) -> Result<Vec<Finding>, Stopped> {
    let problems = coverage::check(files)?;
    Ok(problems
        .into_iter()
        .map(|problem| Finding::error(&problem.path, problem.line, problem.what))
        .collect())
}
