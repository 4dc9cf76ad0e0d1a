//! The programs that stand in for a forge, a leaf and a model, started as anyone would start them.

mod fake_gh;
mod fake_leaf;
mod fake_model;
