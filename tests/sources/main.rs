//! The sources: their prose, their modules and the public interface. These tests read files and compute nothing.

mod interface;
mod modules;
mod style;
