//! A new bundle as text.

use std::io::Write;

use pdca_workspace::drafts::{BriefState, NewBundle};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};

/// Makes the response of a new bundle, which waits for a person if the planner left its brief unchanged.
pub(crate) fn created(new: NewBundle) -> Response {
    let exit = if new.brief == BriefState::Unplanned { Exit::Waiting } else { Exit::Done };
    Response::new(new, exit)
}

impl Report for NewBundle {
    const KIND: &'static str = "new";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let path = cx.show(&self.file);
        let run = cx.out.accent(format!("pdca run {}", self.id));
        if self.written {
            writeln!(out, "{} {path}", cx.out.good("wrote"))?;
            if self.carried {
                writeln!(out, "with what the attempt before it handed on")?;
            }
        }
        match self.brief {
            BriefState::Template if self.dry_run => writeln!(out, "would write {path}")?,
            BriefState::Template => writeln!(out, "next: fill it in, then {run}")?,
            BriefState::Draft => {
                let what = "the brief of the attempt before it, and what that handed on";
                writeln!(out, "{path} is there: {what}")?;
                writeln!(out, "next: edit it, take its slug out of `<…>`, then {run}")?;
            }
            BriefState::Edited => writeln!(out, "next: {run}")?,
            BriefState::Planned => writeln!(out, "next: read it, then {run}")?,
            BriefState::Unplanned => writeln!(out, "the planner left the brief as it was")?,
        }
        Ok(())
    }
}
