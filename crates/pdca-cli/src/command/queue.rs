//! `pdca queue`: bundles that wait for sign-off, cheapest first.

use pdca_workspace::issue::review_queue;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// List bundles that wait for sign-off, cheapest first
///
/// Ordered as `pdca review` shows them: red ones last, then by the number of open items in §6, then by id. The standing
/// question, whether the result is fit for its purpose, is asked for every bundle and counted separately from the
/// findings.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca queue
  pdca queue --json | jq -r '.items[] | select(.cheap) | .id'")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    Ok(Response::done(review_queue(&cx.open()?)?))
}

#[cfg(test)]
mod tests {
    use crate::testing::Desk;

    const STANDING: &str = "Validation — fitness-to-purpose — does it serve the user?";

    fn desk() -> Desk {
        let desk = Desk::new();
        desk.awaiting("10", &["T5 — naming", STANDING], "pass");
        desk.awaiting("9", &[], "pass");
        desk.awaiting("8", &["a", "b", "c"], "fail");
        desk.awaiting("11", &[STANDING], "pass");
        desk.awaiting("7", &[], "pass");
        fs_err::remove_file(desk.workspace.bundle("7").join("patch.diff")).unwrap();
        desk.workspace.write("results/issue_7/close-disposition", "duplicate\n");
        let gates = desk.workspace.read("results/issue_7/check-gates.json");
        desk.workspace
            .write("results/issue_7/check-gates.json", gates.replace("patch_digest", "other"));
        desk.workspace.brief("12", &[]);
        desk
    }

    #[test]
    fn the_cheapest_comes_first_and_the_standing_question_is_counted_apart() {
        insta::assert_snapshot!(desk().run(&["queue"]), @"
        5 wait for sign-off: 3 to confirm, 2 to decide
          7   gates pass  confirm the close                     a-small-thing
          9   gates pass  confirm                               a-small-thing
          11  gates pass  1 to confirm: fitness for purpose     a-small-thing
          10  gates pass  1 finding, fitness for purpose        a-small-thing
          8   gates FAIL  3 findings                            a-small-thing
        next: pdca show 7
        ");
    }

    #[test]
    fn scripts_get_the_items_in_order() {
        let run = desk().run(&["queue", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        let ids: Vec<&str> = json["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["7", "9", "11", "10", "8"]);
        insta::assert_snapshot!(serde_json::to_string_pretty(&json["items"][3]).unwrap(), @r#"
        {
          "brief_changed": false,
          "cheap": false,
          "closes": false,
          "disposition": "fix",
          "forecast_conflicts": [],
          "id": "10",
          "needs_human": 2,
          "open_items": [
            "T5 — naming",
            "Validation — fitness-to-purpose — does it serve the user?"
          ],
          "overall": "pass",
          "patch_changed": false,
          "slug": "a-small-thing",
          "standing": 1
        }
        "#);
    }

    #[test]
    fn a_red_bundle_comes_last_and_is_not_cheap_although_nothing_is_open() {
        let desk = Desk::new();
        desk.awaiting("1", &[], "fail");
        desk.awaiting("2", &["a"], "pass");
        let run = desk.run(&["queue", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!((&json["items"][0]["id"], &json["items"][1]["id"]), (&"2".into(), &"1".into()));
        assert_eq!(json["items"][1]["cheap"], false);
    }

    #[test]
    fn an_empty_queue_is_said() {
        assert_eq!(Desk::new().run(&["queue"]).to_string(), "nothing waits for sign-off\n");
    }
}
