//! Checks that run at the same time, each in a checkout of its own.
//!
//! The first check of a group runs in the checkout of the change, each other one in a further checkout that the tree
//! lends. So no check reads or changes a file that another one writes. Where fewer can be had, the rest of the group
//! runs afterwards, one by one.

use pdca_state::chain;

use crate::{
    attempt::{Judged, void_for},
    check::Check,
    context::{GateContext, RowCheckout},
    job::{CheckAttempt, CheckJob},
    leftovers,
    run::{GateRun, GatesError},
    verdict::CheckFinding,
};

impl GateRun<'_, '_> {
    /// Runs checks that do not share their files, as many at the same time as there are checkouts.
    pub(crate) fn run_apart(
        &mut self,
        checks: &[(&Check, &CheckJob)],
        attempt: CheckAttempt,
    ) -> Result<Vec<Judged>, GatesError> {
        let further = self.tree.as_mut().map(|tree| tree.further(checks.len() - 1));
        let further = further.unwrap_or_default();
        let (together, later) = checks.split_at(checks.len().min(1 + further.len()));
        // The checkout of the change is used again by those that run later.
        let is_followed = self.is_followed;
        self.is_followed |= !later.is_empty();
        let mut judged = self.run_beside(together, &further, attempt)?;
        for (k, one) in later.iter().enumerate() {
            self.is_followed = is_followed || k + 1 < later.len();
            judged.extend(self.run_fresh(std::slice::from_ref(one), attempt)?);
        }
        Ok(judged)
    }

    /// Runs checks at the same time: the first in the checkout of the change, the others in the further ones.
    fn run_beside(
        &mut self,
        checks: &[(&Check, &CheckJob)],
        further: &[RowCheckout],
        attempt: CheckAttempt,
    ) -> Result<Vec<Judged>, GatesError> {
        let Some((first, others)) = checks.split_first() else { return Ok(Vec::new()) };
        let change = self.change();
        let contexts: Vec<GateContext<'_>> =
            further.iter().enumerate().map(|(k, one)| one.context(self.context, k)).collect();
        let jobs: Vec<CheckJob> = others
            .iter()
            .zip(&contexts)
            .map(|((check, _), context)| CheckJob::of(check, attempt, &change, context))
            .collect();
        let mut begun = vec![self.begin(&[*first], attempt)];
        begun.extend(
            jobs.iter()
                .zip(further.iter().zip(&contexts))
                .map(|(job, (checkout, context))| begin_in(checkout, context, job, &change.tree)),
        );
        let own = std::iter::once(((first.0, first.1), self.context));
        let others = others.iter().zip(&jobs).zip(&contexts);
        let others = others.map(|(((check, _), job), context)| ((*check, job), context));
        let ready: Vec<_> =
            own.chain(others).enumerate().filter(|(k, _)| begun[*k].is_ok()).collect();
        let (pairs, contexts): (Vec<_>, Vec<_>) = ready.iter().map(|(_, place)| *place).unzip();
        let ran = self.run_all(&pairs, &contexts);
        let voids: Vec<Option<CheckFinding>> =
            ready.iter().map(|(k, _)| self.void_in(*k)).collect();
        for home in contexts.iter().skip(1).filter_map(|context| context.home.as_ref()) {
            // One that stays behind is made anew before the next row.
            drop(home.remove());
        }
        let mut judged = self.conclude_all(&pairs, ran, &voids)?.into_iter();
        let all = begun.into_iter().map(|begun| match begun {
            Ok(()) => judged.next().expect("every check that could begin was run"),
            Err(finding) => Judged::unrun(finding),
        });
        Ok(all.collect())
    }

    /// Returns the reason why the result of the check in the k-th checkout does not count, if there is one.
    fn void_in(&mut self, k: usize) -> Option<CheckFinding> {
        match k {
            0 => self.void(1),
            k => void_for("it", self.tree.as_mut()?.changed_in(k - 1)),
        }
    }
}

impl RowCheckout {
    /// Returns the context of a check that runs here.
    fn context<'c>(&'c self, of: &GateContext<'c>, k: usize) -> GateContext<'c> {
        let mut context = of.clone();
        context.worktree = Some(&self.path);
        context.lane = self.lane.as_ref();
        context.sandbox.clone_from(&self.sandbox);
        context.home = of.home.as_ref().map(|home| home.beside(k));
        if let Some((_, lane)) = &mut context.primary.replaced {
            lane.clone_from(&self.path);
        }
        context
    }
}

/// Removes what is left of an earlier run of the job, and verifies that the checkout is the tree under check.
fn begin_in(
    checkout: &RowCheckout,
    context: &GateContext<'_>,
    job: &CheckJob,
    expected: &str,
) -> Result<(), CheckFinding> {
    let failed =
        |error: std::io::Error| CheckFinding::unverifiable(&format!("not run: {}", chain(&error)));
    if checkout.tree != expected {
        return Err(CheckFinding::unverifiable(&format!(
            "not run: the checkout is tree {:.12}, not {expected:.12}",
            checkout.tree
        )));
    }
    if let Some(tmp) = checkout.lane.as_ref().and_then(|lane| lane.tmp.as_deref()) {
        leftovers::empty(tmp).map_err(failed)?;
    }
    if let Some(home) = &context.home {
        home.make().map_err(failed)?;
    }
    job.forget().map_err(failed)
}
