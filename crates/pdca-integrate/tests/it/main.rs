//! Sealed changes on real repositories, with real git.

#[cfg(test)]
mod below;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod combinations;
#[cfg(test)]
mod folds;
#[cfg(test)]
mod forecasts;
#[cfg(test)]
mod landings;
#[cfg(test)]
mod links;
#[cfg(test)]
mod offers;
#[cfg(test)]
mod pushes;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod reverts;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod seals;
#[cfg(test)]
mod slice;
#[cfg(test)]
mod states;
