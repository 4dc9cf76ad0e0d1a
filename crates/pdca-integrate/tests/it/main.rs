//! Sealed changes on real repositories, with real git.

#[cfg(test)]
mod scene;
#[cfg(test)]
mod slice;
