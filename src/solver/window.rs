//! A window: the last items of a sequence, held in memory for the streams to read.

use crate::error::{Error, Result};
use crate::theory::definition::{Sequence, for_each_piece};
use crate::theory::nimber::index;
use rayon::prelude::*;

/// The items at the positions `start()..end()` of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Window<T> {
    start: u64,
    items: Vec<T>,
}

/// Minimum number of forgotten items to drop at once. They must also be at least a quarter of all items, so that moving
/// the others down stays cheap.
const MIN_EVICTED: u64 = 1 << 12;

impl<T: Copy> Window<T> {
    /// A window that holds `items` from position `start` on.
    pub(crate) fn new(start: u64, items: Vec<T>) -> Window<T> {
        Window { start, items }
    }

    /// The items at the positions from `from` to the end of `past`: `convert(n, values, items)` writes the items of the
    /// values G(n), G(n + 1), …. All threads of the pool take part.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(crate) fn reading(
        past: &dyn Sequence,
        from: u64,
        convert: impl Fn(u64, &[u16], &mut [T]) + Sync,
    ) -> Result<Window<T>>
    where
        T: Default + Send,
    {
        /// Number of items that one task writes.
        const ITEMS_PER_TASK: usize = 1 << 20;
        let mut items = vec![T::default(); index(past.len() - from)];
        items.par_chunks_mut(ITEMS_PER_TASK).enumerate().try_for_each(|(task, items)| {
            let first = from + (task * ITEMS_PER_TASK) as u64;
            for_each_piece(past, first, first + items.len() as u64, |n, values| {
                convert(n, values, &mut items[index(n - first)..][..values.len()]);
                Ok(())
            })
        })?;
        Ok(Window::new(from, items))
    }

    /// The position of the first item.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// One past the position of the last item.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.items.len() as u64
    }

    /// Index of position `n` in [`Window::items`].
    #[inline]
    pub(crate) fn at(&self, n: u64) -> usize {
        index(n - self.start)
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    pub(crate) fn items_mut(&mut self) -> &mut Vec<T> {
        &mut self.items
    }

    #[inline]
    pub(crate) fn get(&self, n: u64) -> T {
        self.items[index(n - self.start)]
    }

    /// The items at the positions `from..to`.
    pub(crate) fn slice(&self, from: u64, to: u64) -> &[T] {
        &self.items[self.at(from)..self.at(to)]
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    pub(crate) fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        self.items.extend(items);
    }

    /// Appends `count` copies of `item`, and returns them to be overwritten.
    pub(crate) fn grow(&mut self, count: usize, item: T) -> &mut [T] {
        let length = self.items.len();
        self.items.resize(length + count, item);
        &mut self.items[length..]
    }

    /// Drops the positions from `end` on.
    ///
    /// # Panics
    /// If `end` is before the start of the window, which means that positions were forgotten too early.
    pub(crate) fn truncate(&mut self, end: u64) {
        assert!(end >= self.start, "a window cannot be truncated before its start");
        self.items.truncate(index(end - self.start));
    }

    /// The first items, which [`Window::forget_before`] with the same `n` would drop.
    pub(crate) fn evictable(&self, n: u64) -> &[T] {
        let dead = n.saturating_sub(self.start);
        let all = self.items.len() as u64;
        &self.items[..if dead >= MIN_EVICTED.max(all / 4) { index(dead.min(all)) } else { 0 }]
    }

    /// Allows the positions before `n` to be dropped.
    pub(crate) fn forget_before(&mut self, n: u64) {
        self.drop_before(self.start + self.evictable(n).len() as u64);
    }

    /// Drops the positions before `n`.
    pub(crate) fn drop_before(&mut self, n: u64) {
        let dead = n.saturating_sub(self.start).min(self.items.len() as u64);
        self.items.drain(..index(dead));
        self.start += dead;
    }
}

/// Overwrites each item of `out` with one of `items`, converted in turn by `first` and by `second`, beginning with
/// `first`: the two functions serve the positions of the two parities.
pub(crate) fn convert_by_turns<T, U: Copy>(
    items: &[U],
    out: &mut [T],
    first: impl Fn(U) -> T,
    second: impl Fn(U) -> T,
) {
    debug_assert_eq!(items.len(), out.len());
    let ((pairs, last), (out_pairs, out_last)) = (items.as_chunks::<2>(), out.as_chunks_mut::<2>());
    for (out, &[a, b]) in out_pairs.iter_mut().zip(pairs) {
        *out = [first(a), second(b)];
    }
    for (out, &item) in out_last.iter_mut().zip(last) {
        *out = first(item);
    }
}

impl Window<u16> {
    /// Compares the values with those of `past`, from the discarded ones of `past` on. Nothing may read values before
    /// these: no check would find a change in them.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(crate) fn agrees_with(&self, past: &dyn Sequence) -> Result<()> {
        self.agrees_up_to(self.end(), past)
    }

    /// Allows the values before `n` to be dropped, after comparing those that are dropped now with `past`, because no
    /// later check would notice a change in them. Errors as in [`Window::agrees_with`].
    pub(crate) fn forget(&mut self, n: u64, past: &dyn Sequence) -> Result<()> {
        self.agrees_up_to(self.start + self.evictable(n).len() as u64, past)?;
        self.forget_before(n);
        Ok(())
    }

    fn agrees_up_to(&self, end: u64, past: &dyn Sequence) -> Result<()> {
        let from = self.start.max(past.discarded().end);
        for_each_piece(past, from, end.min(past.len()), |n, values| {
            let to = n + values.len() as u64;
            match self.slice(n, to).iter().zip(values).position(|(ours, theirs)| ours != theirs) {
                None => Ok(()),
                Some(i) => Err(Error::Flipped { what: "the value", from: n + i as u64, to }),
            }
        })
    }
}
