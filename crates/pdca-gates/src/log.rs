//! A row's log in the bundle: what its runs printed, byte for byte.

use pdca_state::Bundle;

use crate::{
    row::Row,
    run::{GatesError, Run},
};

/// A piece of a row's log.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) bytes: Vec<u8>,
}

impl Run<'_, '_> {
    /// Puts a row's log into the bundle and says where it is.
    pub(crate) fn keep_log(
        &self,
        row: &Row,
        mut sections: Vec<Section>,
    ) -> Result<Option<String>, GatesError> {
        let Some(bundle) = self.scene.bundle.filter(|_| self.scene.keep_logs) else {
            return Ok(None);
        };
        if sections.is_empty() {
            return Ok(None);
        }
        // The output of a row that ran once is kept as it is.
        let bytes = match (self.fixed(row), sections.as_mut_slice()) {
            (None, [only]) => std::mem::take(&mut only.bytes),
            (before, _) => {
                let before = before.map(|fixed| fixed.log.clone());
                let mut all = before.unwrap_or_default();
                all.extend(rendered(sections));
                all
            }
        };
        let relative = Bundle::gate_log(&row.id);
        let path = bundle.dir().join(&relative);
        // A log can be made again by running the gate again, so it is not worth a sync.
        bundle
            .publish_derived_file(&relative, &bytes)
            .map_err(|error| GatesError::Log { path, source: std::io::Error::other(error) })?;
        Ok(Some(relative.into_string()))
    }
}

/// Several outputs, with a line before each that says what it is.
pub(crate) fn rendered(sections: Vec<Section>) -> Vec<u8> {
    let mut all = Vec::new();
    for section in sections {
        if !all.is_empty() && !all.ends_with(b"\n") {
            all.push(b'\n');
        }
        all.extend(format!("== {} ==\n", section.title).bytes());
        all.extend(section.bytes);
    }
    all
}
