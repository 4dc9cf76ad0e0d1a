//! The one seam through which the driver changes what a later driver looks at.
//!
//! Each such change — a file published, a child started, a checkout reset — has a name and is
//! announced before and after. In production nobody listens. A test that stops the process at every
//! announced point, one after the other, has visited every state between two effects. What a library
//! does inside one effect is that library's to make safe.

/// A moment at which the driver could be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The effect, such as `patch.diff`, `builder` or `reset`.
    pub name: &'static str,
    /// Whether the effect is about to happen or has happened.
    pub when: When,
}

/// On which side of an effect a [`Point`] lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
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
    /// Carries out `effect`, announced before and after under `name`.
    pub fn perform<T, E>(
        &self,
        name: &'static str,
        effect: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.reached(Point { name, when: When::Before });
        let done = effect()?;
        self.reached(Point { name, when: When::After });
        Ok(done)
    }
}
