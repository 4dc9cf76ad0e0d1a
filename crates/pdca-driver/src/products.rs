//! Build products that a leaf left in its checkout: moved beside it before the change is taken, noted, and named.

use pdca_dag::{Case, Pattern};
use pdca_journal::events::WarningCode;
use pdca_lanes::LaneError;
use pdca_state::{Artifact, Brief, Bundle, footprint};

use crate::attempt_notes::{ProductFate, StaysBecause, listed};
use crate::checkout::{Checkout, CheckoutError};
use crate::run_bundle::{BeatError, Driver};

/// Returns the globs of the brief's `Touches`. An invalid one names nothing.
fn touches(bundle: &Bundle) -> Vec<Pattern> {
    let brief = bundle.read(Artifact::Brief).ok().flatten().unwrap_or_default();
    let brief = Brief::parse(&String::from_utf8_lossy(&brief));
    let parse = |glob: &String| Pattern::parse(glob, Case::Sensitive).ok();
    brief.touches().iter().filter_map(parse).collect()
}

/// Moves the build products that nobody asked for out of the checkout, and notes where.
///
/// 1. Note the paths and the place, so that a driver that takes over names those that are gone already.
/// 2. Move them. A driver that was killed in between finds the rest and moves that.
pub(crate) fn leave_out_products(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    attempt: u32,
) -> Result<(), BeatError> {
    let name = format!("products-{}-{attempt}", bundle.id());
    let place = checkout.lane.aside(&name);
    let shown = place.strip_prefix(&cx.config.lanes.root).unwrap_or(&place).to_owned();
    let note = |paths: &[String]| {
        let fate = |_: &str| ProductFate::LeftOut(shown.clone());
        cx.config.attempt_notes(bundle.id()).note_products(attempt, paths, fate)
    };
    let left = set_aside_products(cx, bundle, checkout, &name, &note)?;
    if !left.is_empty() {
        let paths = listed(&left);
        let text =
            format!("build products are left out of the change: {paths}; they are kept in {place}");
        cx.warn(bundle, WarningCode::ProductsLeftOut, text);
    }
    Ok(())
}

/// Moves build products aside under a name, after `note` was called with them. Returns their paths.
pub(crate) fn set_aside_products(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    name: &str,
    note: &dyn Fn(&[String]) -> std::io::Result<()>,
) -> Result<Vec<String>, CheckoutError> {
    let touches = touches(bundle);
    let is_wanted = |path: &str| touches.iter().any(|touch| touch.covers(path));
    let found = checkout.lane.products(&cx.config.products, &is_wanted)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let names = found.names();
    // Noted first: what a killed driver has moved is not found in the checkout any more.
    cx.effects.perform("products-noted", || note(&names)).map_err(CheckoutError::Record)?;
    let set_aside = || -> Result<(), LaneError> { checkout.lane.set_aside(&found, name) };
    cx.effects.perform("products", set_aside)?;
    Ok(names)
}

/// Notes the files of a change that have the name of a build product and are in it all the same.
pub(crate) fn note_products_in(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    attempt: u32,
    patch: &[u8],
) -> Result<(), BeatError> {
    // A patch that cannot be read is refused elsewhere.
    let paths = footprint(patch).unwrap_or_default();
    let is_named = |path: &String| checkout.lane.has_product_name(&cx.config.products, path);
    let paths: Vec<String> = paths.into_iter().filter(is_named).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let touches = touches(bundle);
    let fate = |path: &str| {
        let is_named = touches.iter().any(|touch| touch.covers(path));
        ProductFate::StaysIn(if is_named { StaysBecause::Named } else { StaysBecause::InGit })
    };
    let note = || cx.config.attempt_notes(bundle.id()).note_products(attempt, &paths, fate);
    cx.effects.perform("products-noted", note).map_err(CheckoutError::Record)?;
    let text = format!(
        "{} has the name of a build product and stays in the change: it is in git, or `Touches` names it",
        listed(&paths)
    );
    cx.warn(bundle, WarningCode::ProductsLeftOut, text);
    Ok(())
}
