//! Sealed changes on real repositories, with real git.

#[cfg(test)]
mod scene;
#[cfg(test)]
mod seals;
#[cfg(test)]
mod slice;
