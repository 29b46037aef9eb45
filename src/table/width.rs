//! The width of one value in a table.

use serde::{Deserialize, Serialize};

/// The width of one value in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// One byte, min(G(n), 255); `escapes.npy` has the values of 255 or more.
    U8,
    /// Two bytes, G(n), little-endian.
    U16,
}

impl Width {
    /// Returns the length of a value, in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Width::U8 => 1,
            Width::U16 => 2,
        }
    }

    /// Returns `u8` or `u16`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Width::U8 => "u8",
            Width::U16 => "u16",
        }
    }
}
