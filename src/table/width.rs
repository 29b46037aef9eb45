//! The width of one value in a table.

use serde::{Deserialize, Serialize};

/// The width of one value in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// min(G(n), 255); values of 255 or more are in `escapes.npy`.
    U8,
    /// Two bytes, little-endian.
    U16,
}

impl Width {
    /// Bytes a value.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Width::U8 => 1,
            Width::U16 => 2,
        }
    }

    /// `u8` or `u16`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Width::U8 => "u8",
            Width::U16 => "u16",
        }
    }
}
