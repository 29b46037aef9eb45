//! Deliberate faults, one at a time, that the tests must find (private).
//!
//! A test that has never failed proves little. So ten places contain the mistake that the surrounding code prevents, in
//! a few lines behind [`is`], and `scripts/faults` shows that a test finds each of them.
//! ([`crate::storage::testing::faults`] is different: there the program is right, and its disk fails.)
//!
//! | fault | effect |
//! |---|---|
//! | `drop-sync` | the values are not durable before the record that commits them |
//! | `swap-syncs` | the record is durable before the values are |
//! | `hash-digest-only` | the BLAKE3 of a record covers nothing but the digest of the values |
//! | `cut-to-byte` | a table of bytes loses values above 255, because no escapes are written |
//! | `ignore-short-write` | a partial write counts as complete |
//! | `accept-foreign-record` | a record of another run is accepted: run, rule, width and link are not compared |
//! | `skip-large-targets` | a rare value of 256 or more counts as an option without a witness |
//! | `freeze-rares` | a rare position that a run finds gets no lookups |
//! | `use-unproved` | candidates are returned before their witnesses are found |
//! | `skip-rehash` | a resumed run accepts the table whatever its hash |
//!
//! The environment variable `GRUNDY_FAULT` chooses a fault at compile time, and cargo rebuilds the crate when it
//! changes. No fault can be enabled later, and the compiler removes the faults that are not chosen.
//!
//! Invariant: a build without debug assertions, such as a release, contains no fault, because it does not compile with
//! one.

/// The name of the fault in this build, if any.
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

/// Whether two byte strings are equal; `==` is not a const fn.
const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut i = 0;
    while i < one.len() && i < other.len() && one[i] == other[i] {
        i += 1;
    }
    i == one.len() && i == other.len()
}
