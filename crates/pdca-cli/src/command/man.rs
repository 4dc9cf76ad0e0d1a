//! `pdca man`: prints the manual pages.

use camino::Utf8PathBuf;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Response, TextPage};

/// Print the manual page, or write all of them into a directory
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca man | man -l -
  pdca man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write one page per command into DIR
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<Utf8PathBuf>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let tree = super::tree(cx.env);
    let Some(dir) = &args.dir else {
        let page = TextPage::of(|out| clap_mangen::Man::new(tree).render(out));
        return Ok(Response::done(page?));
    };
    let dir = cx.env.cwd.join(dir);
    let failed = |error: std::io::Error| {
        Failure::from_error(Exit::Unexpected, &error)
            .at(FilePosition::file(&*dir))
            .hint("name a directory that can be written")
    };
    let shown = cx.show(&dir);
    let text = if cx.globals.dry_run {
        format!("would write the pages into {shown}\n")
    } else {
        fs_err::create_dir_all(&dir).map_err(failed)?;
        clap_mangen::generate_to(tree, &dir).map_err(failed)?;
        format!("pages written to {shown}\n")
    };
    Ok(Response::done(TextPage { text }))
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    #[test]
    fn the_page_goes_to_standard_output_or_all_pages_to_a_directory() {
        let desk = Desk::new();
        let run = desk.run(&["man"]);
        assert!(run.out.contains(".TH pdca 1"), "{run}");
        assert_eq!(desk.run(&["man", "--dir", "pages"]).exit, Exit::Done);
        assert!(desk.workspace.has("pages/pdca.1"));
        assert!(desk.workspace.has("pages/pdca-signoff.1"));
    }
}
