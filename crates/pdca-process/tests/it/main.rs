//! Real children, real signals, real files.

#[cfg(test)]
mod driver;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod hold;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod output;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tool;
#[cfg(test)]
mod tree;

pdca_process::supervisor_entry!();
