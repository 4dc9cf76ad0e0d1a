//! The runs of a workspace that are not over, as a person is shown them. Nothing is changed.

use std::io;

use pdca_journal::{FindError, Liveness, Place, RunId, RunState, Tail};

use super::observe::{Lanes, Recovered, look};
use crate::site::Site;

/// A run that is not over, or of which that is not known.
#[derive(Debug)]
pub struct Sighting {
    /// Its id.
    pub id: RunId,
    /// Where its journal has it, or why that cannot be read.
    pub state: Result<Box<RunState>, FindError>,
    /// How many bytes at the end of its journal are not a whole record.
    pub torn: u64,
    /// Whether its driver lives; not known where its journal cannot be read.
    pub driver: Liveness,
    /// Each bundle of it: what is found in lanes, and what the table says about it. None of an
    /// integration, which has no lanes.
    pub bundles: Vec<Recovered>,
}

/// Every run of the site that is not over, the newest first.
pub fn sightings(site: &Site) -> io::Result<Vec<Sighting>> {
    let active = site.runs().active()?;
    if active.is_empty() {
        return Ok(Vec::new());
    }
    let (here, lanes) = (Place::here()?, Lanes::look(site));
    Ok(active.into_iter().map(|run| Sighting::of(run, &here, Some(&lanes))).collect())
}

/// Every integration of the site that is not over, the newest first. `pdca integrate` goes on with it.
pub fn integrations(site: &Site) -> io::Result<Vec<Sighting>> {
    let active = site.integrations().active()?;
    if active.is_empty() {
        return Ok(Vec::new());
    }
    let here = Place::here()?;
    Ok(active.into_iter().map(|run| Sighting::of(run, &here, None)).collect())
}

impl Sighting {
    fn of(run: pdca_journal::Run, here: &Place, lanes: Option<&Lanes>) -> Self {
        match run.found {
            Err(error) => Self {
                id: run.id,
                state: Err(error),
                torn: 0,
                driver: Liveness::Unknown,
                bundles: Vec::new(),
            },
            Ok(found) => {
                let state = found.state;
                let looked = lanes.map(|lanes| {
                    state.bundles.keys().filter_map(|id| look(lanes, &state, id)).collect()
                });
                let bundles = looked.unwrap_or_default();
                let driver = state.driver.liveness(here);
                let torn = match found.tail {
                    Tail::Torn { bytes, .. } => bytes,
                    Tail::Whole => 0,
                };
                Self { id: run.id, state: Ok(Box::new(state)), torn, driver, bundles }
            }
        }
    }
}
