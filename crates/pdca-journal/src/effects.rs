//! The one seam through which the driver changes what a later driver looks at.
//!
//! Each such change — a file published, a child started, a checkout reset — has a name and is
//! announced before and after. In production only the log listens, where a maintainer asked for one. A test that
//! stops the process at every announced point, one after the other, has visited every state between two effects. What a
//! library does inside one effect is that library's to make safe.

use tracing::{debug, debug_span};

/// A moment at which the driver could be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The effect, such as `patch.diff`, `builder` or `reset`.
    pub name: &'static str,
    /// Whether the effect is about to happen or has happened.
    pub when: EffectSide,
}

/// On which side of an effect a [`Point`] lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectSide {
    /// Nothing of it has happened.
    Before,
    /// All of it has happened.
    After,
}

/// Somebody who is told of every effect.
pub trait Effects: Sync {
    /// The driver has come to `point`. A test's implementation may not return.
    fn reached(&self, point: Point);
}

/// Nobody listens: the implementation for real work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Effects for Unwatched {
    fn reached(&self, _: Point) {}
}

impl dyn Effects + '_ {
    /// Logs `point`, then tells of it: an effect at which the process ends is the last line of its log.
    pub fn announce(&self, point: Point) {
        let what = match point.when {
            EffectSide::Before => "begins",
            EffectSide::After => "done",
        };
        debug!(effect = point.name, "{what}");
        self.reached(point);
    }

    /// Carries out `effect`, announced before and after under `name`.
    pub fn perform<T, E>(
        &self,
        name: &'static str,
        effect: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let _span = debug_span!("effect", name).entered();
        self.announce(Point { name, when: EffectSide::Before });
        // A failed effect is not announced as done: some of it may have happened.
        let done = effect().inspect_err(|_| debug!(effect = name, "failed"))?;
        self.announce(Point { name, when: EffectSide::After });
        Ok(done)
    }
}
