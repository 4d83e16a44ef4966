//! VOEvents: well-formed or not, valid or not, what they are and what they say, in one pass.

mod characters;
mod check;
mod checker;
mod facts;
mod references;
mod scan;
mod scopes;
mod simple;
mod tables;
mod tree;
mod validate;

pub use checker::{Checked, Checker};
