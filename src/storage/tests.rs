//! Tests of the rule of the first disk error.

use super::testing::{Fault, Faults, Memory, Plan};
use super::*;
use std::path::Path;
use std::sync::Arc;

#[test]
fn no_file_is_written_after_a_failed_sync_or_eio() {
    // The operations are: open a, open b, write a, sync a. The write or the sync fails once.
    for (at, fault) in [(3, Fault::Io), (4, Fault::Io), (2, Fault::NoSpace)] {
        let memory = Memory::new();
        ["a", "b"].into_iter().for_each(|name| memory.put(name, vec![0]));
        let faults = Arc::new(Faults::new(Arc::new(memory.clone()), Plan::At { at, fault, lasting: false }));
        let dir = Dir::on(faults.clone(), Path::new("run"));
        let [a, b] = ["a", "b"].map(|name| dir.open(name, Mode::Write).unwrap());
        assert!(a.write_all_at(&[1], 0).and_then(|()| a.sync_data()).is_err());
        for refused in [b.write_all_at(&[1], 0), b.sync_data(), a.sync_all(), b.set_length(0), dir.sync()] {
            assert_eq!(refused.unwrap_err().to_string(), poisoned().to_string());
        }
        assert!(dir.remove("b").is_err() && dir.rename("b", "c").is_err() && dir.open("c", Mode::Make).is_err());
        assert_eq!((faults.disobeyed(), memory.get("b")), (0, Some(vec![0])));
        b.read_exact_at(&mut [7], 0).unwrap();
    }
}
