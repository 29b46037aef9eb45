//! What a check reports: its progress, and its extent at the end.

/// The extent of a check that found nothing wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Report {
    /// First n checked.
    pub from: u64,
    /// One past the last n checked.
    pub to: u64,
    /// Number of values that were hashed, compared or computed again.
    pub checked: u64,
    /// Number of journal records read.
    pub records: u64,
    /// The n between `from` and `to` that could not be checked because values are discarded, as a half-open range.
    pub unchecked: Option<(u64, u64)>,
    /// Names of the kernels that computed the values again, joined by `, `; or `definition`.
    pub kernel: Option<String>,
}

/// Returns a function that reports the progress of one range as that of the whole check: `before` of `all` values are
/// done already.
pub(super) fn overall(progress: &mut impl FnMut(u64, u64), before: u64, all: u64) -> impl FnMut(u64, u64) {
    move |done, _| progress(before + done, all)
}
