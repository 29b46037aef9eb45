//! Deliberate faults, one at a time, that the tests must find (private).
//!
//! A test that is green says little before it was seen to be red. So at ten places stands the mistake that the code
//! around it is there to prevent, in a few lines behind [`is`], and `scripts/faults` shows that a test finds it.
//! (What fails in [`crate::storage::faults`] is something else: there the program is right, and its disk is not.)
//!
//! | fault | what is then wrong |
//! |---|---|
//! | `drop-sync` | values are not made durable before the record that speaks of them |
//! | `swap-syncs` | the record is durable before the values are |
//! | `hash-digest-only` | the BLAKE3 of a record covers nothing but the digest of the values |
//! | `cut-to-byte` | a table of bytes loses what exceeds 255: no escapes are written |
//! | `ignore-short-write` | a write of some bytes is taken for one of all |
//! | `accept-foreign-record` | a record of another run is accepted: run, rule, width and link are not compared |
//! | `skip-large-targets` | a rare value of 256 or more is taken for an option without a witness |
//! | `freeze-rares` | a rare heap that is found on the way is not looked up |
//! | `use-unproved` | candidates are handed out before their witnesses are found |
//! | `skip-rehash` | a resumed run believes the table, whatever its hash |
//!
//! The variable `GRUNDY_FAULT` decides when the crate is compiled, and cargo notices when it changes. Nothing can
//! switch a fault on later, and what is not chosen the compiler removes.
//!
//! Invariant: a build without debug assertions, as a release is, contains none: it does not compile with one.

const FAULT: Option<&str> = option_env!("GRUNDY_FAULT");

const _: () = assert!(
    FAULT.is_none() || cfg!(debug_assertions),
    "GRUNDY_FAULT puts a deliberate fault into the program, for tests only: unset it to build a release"
);

/// Whether this build has the fault of this name.
pub(crate) const fn is(name: &str) -> bool {
    match FAULT {
        Some(fault) => same(fault.as_bytes(), name.as_bytes()),
        None => false,
    }
}

/// `==`, which is no const fn yet.
const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut i = 0;
    while i < one.len() && i < other.len() && one[i] == other[i] {
        i += 1;
    }
    i == one.len() && i == other.len()
}
