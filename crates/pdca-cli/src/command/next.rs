//! Bare `pdca`: the status, and the next command.

use crate::context::Context;
use crate::failure::Failure;
use crate::render::status::StatusReport;
use crate::report::Response;

pub(crate) fn run(cx: &Context<'_>) -> Result<Response, Failure> {
    Ok(Response::done(StatusReport::load(cx, true)?))
}

#[cfg(test)]
mod tests {
    use crate::testing::Desk;

    fn next(desk: &Desk) -> String {
        desk.run(&[]).out.lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn bare_pdca_shows_the_status_and_one_command() {
        let desk = Desk::new();
        desk.workspace.brief("36", &[]);
        insta::assert_snapshot!(desk.run(&[]), @"
        PLANNED           36  a-small-thing

        next: pdca run 36   # 36 can go on
        ");
    }

    #[test]
    fn what_runs_by_itself_comes_before_what_waits_for_a_person() {
        let desk = Desk::new();
        insta::assert_snapshot!(next(&desk), @r#"next: pdca new <id> --title "…"   # there is no bundle yet"#);
        desk.complete("1");
        insta::assert_snapshot!(next(&desk), @r#"next: pdca new <id> --title "…"   # everything is done"#);
        desk.workspace.brief("2", &[("Depends on", "99")]);
        insta::assert_snapshot!(next(&desk), @"next: pdca why 2   # everything left is blocked");
        desk.workspace.write("results/issue_3/notes.json", "{}");
        insta::assert_snapshot!(next(&desk), @"next: pdca new 3   # 3 has no brief");
        desk.workspace.write("results/issue_3/brief.md", "- **Slug:** <x>\n");
        insta::assert_snapshot!(next(&desk), @"next: $EDITOR results/issue_3/brief.md   # the brief of 3 is a template still");
        desk.awaiting("4", &[], "pass");
        insta::assert_snapshot!(next(&desk), @"next: pdca show 4   # 4 waits for your sign-off");
        desk.awaiting("5", &[], "pass");
        insta::assert_snapshot!(next(&desk), @"next: pdca queue   # 2 bundles wait for your sign-off");
        desk.workspace.brief("6", &[]);
        insta::assert_snapshot!(next(&desk), @"next: pdca run 6   # 6 can go on");
        desk.workspace.brief("7", &[]);
        insta::assert_snapshot!(next(&desk), @"next: pdca batch   # 2 bundles can go on");
    }

    #[test]
    fn outside_of_a_workspace_it_says_how_to_make_one() {
        let mut desk = Desk::new();
        desk.env.cwd = desk.workspace.around();
        insta::assert_snapshot!(desk.run(&[]), @"
        --- stderr
        error: no pdca.toml in [TMP] or in a directory above it
        hint: `pdca init` makes a workspace here, `-C DIR` names another, `pdca demo` shows one at work
        --- exit 2
        ");
    }
}
