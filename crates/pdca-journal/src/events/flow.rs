//! The steps of a flow, which spans runs and integrations and has a log of its own.

use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::events::event::Scope;
use crate::events::kind::EventKind;
use crate::events::stream::EventStream;

/// A step of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FlowTask {
    /// Drafts are made of a tracker's export.
    Draft,
    /// A planning session with the person.
    Plan,
    /// A batch over the lanes.
    Batch,
    /// A sign-off session with the person.
    SignOff,
    /// Accepted changes are integrated.
    Integrate,
    /// Accepted changes are published.
    Publish,
    /// The look back with the person.
    Act,
}

impl FlowTask {
    /// Every step, in the order of the cycle.
    pub const ALL: [Self; 7] = [
        Self::Draft,
        Self::Plan,
        Self::Batch,
        Self::SignOff,
        Self::Integrate,
        Self::Publish,
        Self::Act,
    ];

    /// Returns the words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Draft => "drafting",
            Self::Plan => "planning session",
            Self::Batch => "batch",
            Self::SignOff => "sign-off session",
            Self::Integrate => "integration",
            Self::Publish => "publication",
            Self::Act => "look back",
        }
    }
}

impl EventStream {
    /// Does a step of a flow between its two events. `said` makes the text of a failure.
    pub fn flow_step<T, E>(
        &self,
        task: FlowTask,
        bundles: &[BundleId],
        said: impl FnOnce(&E) -> String,
        job: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let bundles = bundles.to_vec();
        self.emit(Scope::Workspace, None, EventKind::FlowBegan { task, bundles: bundles.clone() });
        let began = self.now();
        let done = job();
        let duration = self.now().duration_since(began).as_millis();
        let duration_ms = u64::try_from(duration).unwrap_or_default();
        let error = done.as_ref().err().map(said);
        let ended = EventKind::FlowEnded { task, bundles, error, duration_ms };
        self.emit(Scope::Workspace, None, ended);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_has_an_end_with_its_error() {
        let (to, events) = std::sync::mpsc::channel();
        let stream = EventStream::new(jiff::Timestamp::now, move |event| drop(to.send(event)));
        let ids = ["7".parse().unwrap()];
        let said = |error: &&str| (*error).to_owned();
        assert_eq!(stream.flow_step(FlowTask::Plan, &ids, said, || Ok(1)), Ok(1));
        let failed: Result<(), _> = stream.flow_step(FlowTask::Batch, &[], said, || Err("no disk"));
        assert_eq!(failed, Err("no disk"));
        drop(stream);
        let seen: Vec<(FlowTask, Option<Option<String>>)> = events
            .iter()
            .map(|event| {
                if let EventKind::FlowBegan { task, .. } = event.kind {
                    return (task, None);
                }
                let EventKind::FlowEnded { task, error, .. } = event.kind else {
                    panic!("{event:?}");
                };
                (task, Some(error))
            })
            .collect();
        let no_disk = Some("no disk".to_owned());
        let expected = [
            (FlowTask::Plan, None),
            (FlowTask::Plan, Some(None)),
            (FlowTask::Batch, None),
            (FlowTask::Batch, Some(no_disk)),
        ];
        assert_eq!(seen, expected);
    }
}
