//! The table files as another reader of NumPy files sees them.

use super::*;
use crate::storage::Dir;

/// What numpy's memory maps rely on: a whole array at any time, of exactly the committed length.
#[test]
fn the_tables_are_npy_files_of_the_committed_length_at_every_moment() {
    let values: Vec<u16> = (0..3000u16).map(|n| n.wrapping_mul(77) % 400).collect();
    for width in [Width::U8, Width::U16] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("values.npy");
        let read = || -> (u64, Vec<u16>) {
            let bytes = std::fs::read(&path).unwrap();
            let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
            let length = npy.shape()[0];
            let values: Vec<u16> = match width {
                Width::U8 => npy.data::<u8>().unwrap().map(|v| u16::from(v.unwrap())).collect(),
                Width::U16 => npy.data::<u16>().unwrap().map(|v| v.unwrap()).collect(),
            };
            (length, values)
        };
        let mut table = Table::create(&Dir::at(dir.path()), width).unwrap();
        assert_eq!(read(), (0, vec![]));
        let mut committed = 0;
        for piece in values.chunks(700) {
            table.write(piece).unwrap();
            table.sync().unwrap();
            assert_eq!(read().0, committed as u64, "what is only written is not in the shape");
            table.publish().unwrap();
            committed += piece.len();
            let expected: Vec<u16> = match width {
                Width::U8 => values[..committed].iter().map(|&v| v.min(255)).collect(),
                Width::U16 => values[..committed].to_vec(),
            };
            assert_eq!(read(), (committed as u64, expected));
            if width == Width::U8 {
                let bytes = std::fs::read(dir.path().join("escapes.npy")).unwrap();
                let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
                let large = values[..committed].iter().filter(|&&v| v >= 255).count();
                assert_eq!(npy.shape(), [large as u64]);
                assert_eq!(npy.dtype().descr().replace(", ]", "]"), "[('n', '<u8'), ('v', '<u2')]");
                assert_eq!(bytes.len(), 4096 + 10 * large);
            }
        }
        table.cut(table.written()).unwrap();
        assert_eq!(read().1.len(), values.len());
    }
}
