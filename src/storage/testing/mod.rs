//! Storages for tests: a simulated disk and injected errors. They are public so that the tests of the repository can
//! use them; they are no part of the library's interface.

pub mod faults;
pub mod memory;

pub use faults::{Fault, Faults, Plan};
pub use memory::{Memory, SECTOR};
