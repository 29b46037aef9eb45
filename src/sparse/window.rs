//! The end of a sequence, held in memory: what the streams look back at.

use crate::nimber::index;

/// Items of the positions `start()..end()` of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Window<T> {
    start: u64,
    items: Vec<T>,
}

/// Forgotten items are kept until there are this many and a quarter of all, so that moving the rest down stays cheap.
const SLACK: u64 = 1 << 12;

impl<T: Copy> Window<T> {
    pub(crate) fn new(start: u64, items: Vec<T>) -> Window<T> {
        Window { start, items }
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

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

    /// The items of `from..to`.
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

    /// Drops the positions from `end` on.
    ///
    /// # Panics
    /// When positions before the window would be the last: they were forgotten too early.
    pub(crate) fn truncate(&mut self, end: u64) {
        assert!(end >= self.start, "a window was taken back to before its start");
        self.items.truncate(index(end - self.start));
    }

    /// Allows the positions before `n` to be dropped.
    pub(crate) fn forget_before(&mut self, n: u64) {
        let dead = n.saturating_sub(self.start);
        if dead >= SLACK.max((self.items.len() as u64) / 4) {
            let dead = dead.min(self.items.len() as u64);
            self.items.drain(..index(dead));
            self.start += dead;
        }
    }
}
