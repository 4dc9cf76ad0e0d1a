//! `pdca config migrate`: writes the file of an older instance as one of ours.

use std::io::Write;

use pdca_workspace::config::plan_migration;

use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::report::Response;

pub(super) fn run(cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let mut migration = plan_migration(&cx.globals.start_dir(cx.env)?, cx.globals.dry_run)?;
    if migration.is_current() || cx.globals.dry_run {
        return Ok(render::config::migrated(migration));
    }
    let mut is_proposed = false;
    if !cx.globals.yes {
        if !cx.may_ask() {
            let failure = Failure::usage("nothing was written: there is no terminal to ask on");
            let again = cx.typed("pdca config migrate --yes");
            let response = render::config::migrated(migration);
            return Ok(response.failed(failure.hint(format!("`{again}`"))));
        }
        render::config::proposal(&migration, cx, err)?;
        is_proposed = true;
        if !cx.ask("Write it?", err)? {
            return Ok(render::config::asked(migration));
        }
    }
    migration.write()?;
    Ok(if is_proposed {
        render::config::asked(migration)
    } else {
        render::config::migrated(migration)
    })
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    const OLDER: &str = "# ours\n[driver]\n# how many\nlanes = 2\nworktree = true\n# a cap\nleaf_memory_max = \"1G\"\n\n\
        [gates]\nchecks = [\n  # the row\n  { id = \"a\", tier = \"T1\", cmd = \"true\" },\n]\nhost_ci = [\"typos\"]\n";

    #[test]
    fn the_text_is_shown_and_nothing_is_written_in_a_dry_run() {
        let desk = Desk::new();
        desk.workspace.config(OLDER);
        let run = desk.run(&["config", "migrate", "--dry-run"]);
        assert_eq!(run.exit, Exit::Done, "{run}");
        for line in [
            "read as (2):\n",
            "  line 7: `driver.leaf_memory_max`: leaf_memory_mb = 1024\n",
            "not used (1):\n",
            "  line 5: `driver.worktree`: work is always done in private checkouts\n",
            "  # a cap\n  leaf_memory_mb = 1024\n",
            "  # the row\n",
        ] {
            assert!(run.out.contains(line), "{line:?} is not in\n{run}");
        }
        assert_eq!(fs_err::read_to_string(desk.workspace.path().join("pdca.toml")).unwrap(), OLDER);
    }

    #[test]
    fn the_old_file_is_kept_and_the_new_one_needs_no_compat() {
        let desk = Desk::new();
        desk.workspace.config(OLDER);
        let run = desk.run(&["config", "migrate", "--yes"]);
        assert_eq!(run.exit, Exit::Done, "{run}");
        let kept = desk.workspace.path().join("pdca.toml.old");
        assert_eq!(fs_err::read_to_string(&kept).unwrap(), OLDER);
        assert_eq!(desk.run(&["status"]).to_string(), "no bundles in results\n");
        let again = desk.run(&["config", "migrate", "--yes"]);
        assert_eq!(again.exit, Exit::NothingToDo, "{again}");
        assert!(!desk.workspace.path().join("pdca.toml.old-2").exists());
    }

    #[test]
    fn without_a_terminal_nothing_is_written_and_the_command_is_named() {
        let desk = Desk::new();
        desk.workspace.config(OLDER);
        let run = desk.run(&["config", "migrate"]);
        assert_eq!(run.exit, Exit::Usage);
        assert!(run.err.contains("`pdca config migrate --yes`"), "{run}");
    }

    #[test]
    fn what_gates_and_is_not_known_stops_it() {
        let desk = Desk::new();
        desk.workspace.config("[driver]\nworktree = true\n[gates]\nsecond_opinion = true\n");
        for args in [["config", "migrate", "--yes"], ["--compat", "-q", "status"]] {
            let run = desk.run(&args);
            assert_eq!(run.exit, Exit::Usage, "{run}");
            assert!(run.err.contains("unknown key `second_opinion` in [gates]"), "{run}");
        }
    }
}
