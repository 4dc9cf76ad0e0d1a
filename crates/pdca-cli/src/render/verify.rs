//! A verified certificate as text.

use std::io::Write;

use pdca_workspace::integration::Verification;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

impl Report for Verification {
    const KIND: &'static str = "verify";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let p = cx.out;
        let Self { base, commit, tree, .. } = self;
        writeln!(out, "{}  {}", p.good("holds"), cx.show(&self.certificate))?;
        let ids = self.bundles.join(" + ");
        writeln!(out, "  {ids} onto {base:.12} make {commit:.12}, bit for bit")?;
        writeln!(out, "  tree {tree:.12} was gated green")?;
        if !self.quarantined.is_empty() {
            let rows = self.quarantined.join(", ");
            writeln!(out, "  {} {rows} was red and in quarantine", p.warn("without:"))?;
        }
        if self.same_gates == Some(false) {
            let text = "by other gates than those that are configured now";
            writeln!(out, "  {} {text}; `pdca gates --working-tree` asks those", p.warn("gated"))?;
        }
        writeln!(out, "{}", p.faint(format_args!("  {}", self.git_version)))?;
        Ok(())
    }
}
