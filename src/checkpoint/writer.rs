//! The thread that commits.
//!
//! While the solver computes values, a thread of its own runs the commits, one at a time and in order ([`Writer`]).
//! The solver reads the values of a commit in flight from its batch, and earlier ones from a map of the committed part
//! ([`Published`]). A commit returns a new map, which refuses the values that it discards. The solver's thread takes
//! this map before it starts the next commit, and only that next commit punches the hole. So no map in use can read a
//! hole.

use super::commit::{Batch, Committer};
use crate::error::{Error, Result};
use crate::table::Published;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;

/// A committer on a thread of its own, with at most one commit in flight.
pub(crate) struct Writer {
    keep: Option<u64>,
    published: Published,
    /// The values of the commit in flight.
    in_flight: Arc<Vec<u16>>,
    /// The buffer of the previous commit, reused because fresh memory must first be mapped page by page.
    spare: Vec<u16>,
    busy: bool,
    /// `None` when the thread shall end.
    orders: Option<SyncSender<Batch>>,
    done: Receiver<Result<Published>>,
    thread: Option<JoinHandle<Committer>>,
}

impl Writer {
    /// Moves the committer to a thread of its own.
    ///
    /// # Errors
    /// [`Error::Io`] if the system starts no thread.
    pub(crate) fn new(mut committer: Committer) -> Result<Writer> {
        let dir = committer.dir().clone();
        let keep = committer.keep();
        let published = committer.table().published().clone();
        let (orders, inbox) = sync_channel::<Batch>(1);
        let (outbox, done) = channel();
        let work = move || {
            for batch in inbox {
                let result = committer.commit(&batch).map(|()| committer.table().published().clone());
                let failed = result.is_err();
                drop(batch); // `take_result` gets the buffer back only if no other reference is left
                if outbox.send(result).is_err() || failed {
                    break; // nothing is written after an error
                }
            }
            committer
        };
        let thread = std::thread::Builder::new().name("commit".into()).spawn(work);
        let thread = Some(thread.map_err(Error::io("starting a thread for", dir.path()))?);
        Ok(Writer {
            keep,
            published,
            in_flight: Arc::default(),
            spare: Vec::new(),
            busy: false,
            orders: Some(orders),
            done,
            thread,
        })
    }

    /// Minimum number of last values to keep; `None` if the run keeps all values.
    pub(crate) fn keep(&self) -> Option<u64> {
        self.keep
    }

    /// The values whose commit has ended.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    /// The values that follow the published values, while their commit is in flight.
    pub(crate) fn in_flight(&self) -> &[u16] {
        &self.in_flight
    }

    /// Takes an empty buffer for the values of the next commit.
    pub(crate) fn take_spare(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.spare)
    }

    /// Returns whether a commit is in flight. Only [`Writer::poll`] and [`Writer::wait`] notice its end.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Takes the result of the commit in flight if it has ended, without waiting.
    ///
    /// # Errors
    /// The error of the commit.
    pub(crate) fn poll(&mut self) -> Result<()> {
        match self.done.try_recv() {
            Ok(result) => self.take_result(result),
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => self.resume_panic(),
        }
    }

    /// Waits for the commit in flight.
    ///
    /// # Errors
    /// The error of the commit.
    pub(crate) fn wait(&mut self) -> Result<()> {
        if !self.busy {
            return Ok(());
        }
        match self.done.recv() {
            Ok(result) => self.take_result(result),
            Err(_) => self.resume_panic(),
        }
    }

    /// Notes the end of the commit in flight and takes back its buffer.
    fn take_result(&mut self, result: Result<Published>) -> Result<()> {
        self.busy = false;
        self.published = result?;
        self.spare = Arc::into_inner(std::mem::take(&mut self.in_flight)).unwrap_or_default();
        self.spare.clear();
        Ok(())
    }

    /// Continues the panic of the thread, which ended without a result.
    fn resume_panic(&mut self) -> ! {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            _ => panic!("the commit thread ended without a result"),
        }
    }

    /// Waits for the commit in flight, then starts the next one.
    ///
    /// # Errors
    /// The error of the commit that was in flight.
    pub(crate) fn commit(&mut self, batch: Batch) -> Result<()> {
        self.wait()?;
        self.in_flight = Arc::clone(&batch.values);
        self.busy = true;
        let is_sent = self.orders.as_ref().is_some_and(|orders| orders.send(batch).is_ok());
        if is_sent { Ok(()) } else { self.resume_panic() }
    }

    /// Waits for the commit in flight, then ends the run cleanly ([`Committer::close`]).
    ///
    /// # Errors
    /// The error of the commit, or of [`Committer::close`].
    pub(crate) fn close(mut self) -> Result<()> {
        self.wait()?;
        self.orders = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(committer)) => committer.close(),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Writer {
    /// Waits for the thread to end: after that nothing is written and the lock is free.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
